"""The live view of a run on a terminal: a few lines that say where it stands and what it does."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .run_watch import RoundNow, RunWatch

_ROUNDS_SHOWN = 6
_BRANCHES_SHOWN = 12


def run_screen(watch: RunWatch, now_us: int) -> RenderableType:
    """Return the view at `now_us`, Unix microseconds: the time is the caller's, so it moves on."""
    return Group(*_parts(watch, now_us))


def _parts(watch: RunWatch, now_us: int) -> Iterator[RenderableType]:
    yield Text(f"{watch.kernel}  {watch.phase}  {_clock(now_us - watch.begun_us)}", style="bold")
    yield Text(watch.best.text, style="green" if watch.best.cost is not None else "dim")
    yield Text(_work(watch))
    if watch.doing:
        yield Text(f"{watch.doing} ({_clock(now_us - watch.doing_since_us)})", style="dim")
    if watch.calls or watch.open_calls:
        yield Text(_spend(watch))
    if watch.rounds:
        yield _rounds_table(watch)
    if watch.branches:
        yield _branches_table(watch, now_us)


def _work(watch: RunWatch) -> str:
    rate = watch.evaluations_per_minute
    words = f"{watch.evaluated} evaluated, {len(watch.evaluating)} under evaluation"
    return words if rate is None else f"{words}, {rate:.1f} per minute"


def _spend(watch: RunWatch) -> str:
    limit = "" if watch.limit_microusd is None else f" of ${watch.limit_microusd / 1e6:.2f}"
    return (
        f"${watch.spent_microusd / 1e6:.4f}{limit}, {watch.tokens:,} tokens in {watch.calls}"
        f" calls, {watch.open_calls} open"
    )


def _rounds_table(watch: RunWatch) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("round", "kind", "kept, best first"):
        table.add_column(column)
    for one in watch.rounds[-_ROUNDS_SHOWN:]:
        table.add_row(str(one.number), one.kind, _beam(one, watch))
    return table


def _beam(one: RoundNow, watch: RunWatch) -> str:
    if one.beam is None:
        return "open"
    shown = (f"#{seq} {watch.speeds.get(seq, '')}".strip() for seq in one.beam)
    return ", ".join(shown) or "nothing"


def _branches_table(watch: RunWatch, now_us: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("branch", "slot", "idea", "now", "for"):
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    for name, branch in list(watch.branches.items())[:_BRANCHES_SHOWN]:
        table.add_row(
            name, branch.slot, branch.what, branch.doing, _clock(now_us - branch.since_us)
        )
    hidden = len(watch.branches) - _BRANCHES_SHOWN
    if hidden > 0:
        table.add_row(f"and {hidden} more")
    return table


def _clock(elapsed_us: int) -> str:
    minutes, seconds = divmod(max(0, elapsed_us) // 1_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
