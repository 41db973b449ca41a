"""The live view of a run: how it stands at this moment, out of its events, in a few lines.

It reads nothing but events, so a view never touches the store, and one that is handed the events
of an earlier session shows what that session had found.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kopt.config.time_left import counted_down, left_words
from kopt.search.records.run_state import Event, EventKind

from .run_lines import BestSoFar, orders, prompt_tokens, speed_words, tamed


@dataclass
class BranchNow:
    """One branch of the open round."""

    what: str
    """Family and name of its hypothesis."""
    slot: str
    doing: str
    since_us: int


@dataclass
class RoundNow:
    """One round that was begun."""

    number: int
    kind: str
    beam: tuple[int, ...] | None = None
    """Best first; None while it is open."""


@dataclass
class RunWatch:
    """The present of a run; `see` every event in order."""

    kernel: str = ""
    begun_us: int = 0
    """When the process that drives it now took it up."""
    now_us: int = 0
    """Time of the last event, microseconds."""
    best: BestSoFar = field(default_factory=BestSoFar)
    rounds: list[RoundNow] = field(default_factory=list[RoundNow])
    branches: dict[str, BranchNow] = field(default_factory=dict[str, BranchNow])
    speeds: dict[int, str] = field(default_factory=dict[int, str])
    """Words of each candidate's speed, by its number."""
    evaluated: int = 0
    evaluated_before: int = 0
    """Evaluations that earlier processes did."""
    done: int = 0
    """Candidates that were evaluated quickly, of `known` ones: those of an open round included."""
    known: int = 0
    evaluating: set[int] = field(default_factory=set[int])
    calls: int = 0
    open_calls: int = 0
    tokens: int = 0
    spent_microusd: int | None = 0
    limit_microusd: int | None = None
    phase: str = "starting"
    doing: str = ""
    """The last line that was said besides the events; empty once another event has come."""
    doing_since_us: int = 0
    _branch_of: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def left_words(self) -> str:
        """How long the known candidates take at this rate; empty while branches may bring more."""
        rate = self.evaluations_per_minute
        return "" if self.branches or not rate else left_words((self.known - self.done) * 60 / rate)

    @property
    def evaluations_per_minute(self) -> float | None:
        """Rate of the process that drives the run now; None in its first second."""
        seconds = (self.now_us - self.begun_us) / 1e6
        done = self.evaluated - self.evaluated_before
        return 60.0 * done / seconds if seconds >= 1.0 else None

    def see(self, event: Event) -> None:
        """Take one event into account."""
        event = tamed(event)
        self.now_us = event.at_us
        self.begun_us = self.begun_us or event.at_us  # a step's run may have begun long ago
        self.doing = ""
        data = event.data
        match event.kind:
            case EventKind.RUN_STARTED | EventKind.RUN_RESUMED:
                self._begin(event)
            case EventKind.ROUND_STARTED:
                self.rounds.append(RoundNow(data["round"], data["kind"]))
                self.known += data["candidates"]
                self.branches.clear()
                self.phase = f"round {data['round']} ({data['kind']})"
            case EventKind.ROUND_DONE if self.rounds:
                self.rounds[-1].beam = tuple(data["beam"])
                self.phase = f"round {self.rounds[-1].number} is done"
            case EventKind.FINAL_CHECK:
                self.phase = f"full check of #{data['candidate']}"
            case EventKind.SOFT_VERIFIED:
                self.phase = f"#{data['candidate']} was read"
            case EventKind.REFLECTED:
                self.phase = f"round {data['round']} is reflected on"
            case EventKind.LEARNED:
                self.phase = f"round {data['round']} is learned from"
            case EventKind.CALL_STARTED | EventKind.CALL_DONE:
                self._see_call(event)
            case EventKind.BRANCH_STARTED | EventKind.CANDIDATE_ADDED | EventKind.BRANCH_ENDED:
                self._see_branch(event)
            case _:
                self._see_evaluation(event)

    def say(self, text: str, at_us: int) -> None:
        """Take into account what the run said at `at_us`, Unix microseconds."""
        self.doing, self.doing_since_us = text, at_us

    def _begin(self, event: Event) -> None:
        self.kernel = event.data.get("kernel", self.kernel)
        self.begun_us = event.at_us
        self.evaluated_before = self.evaluated
        self.evaluating.clear()
        self.open_calls = 0

    def _see_call(self, event: Event) -> None:
        data = event.data
        branch = self.branches.get(data["branch"] or "")
        if event.kind is EventKind.CALL_STARTED:
            self.open_calls += 1
            doing = f"{data['role']}: {data['model']} is asked"
        else:
            self.open_calls = max(0, self.open_calls - 1)
            self.calls += 1
            self.tokens += prompt_tokens(data) + (data["output_tokens"] or 0)
            self.spent_microusd = data["spent_microusd"]
            self.limit_microusd = data["limit_microusd"]
            doing = f"{data['role']}: works with the answer"
        if branch is not None:
            branch.doing, branch.since_us = doing, event.at_us
        elif event.kind is EventKind.CALL_STARTED:
            self.phase = f"round {data['round']}: {data['role']}, {data['model']} is asked"

    def _see_branch(self, event: Event) -> None:
        data = event.data
        name: str = data["branch"]
        if event.kind is EventKind.BRANCH_STARTED:
            what = f"{data['family']}, {data['name']}"
            self.branches[name] = BranchNow(what, data["slot"], "begins", event.at_us)
        elif event.kind is EventKind.BRANCH_ENDED:
            self.branches.pop(name, None)
        else:
            self._branch_of[data["candidate"]] = name
            self._tell(data["candidate"], f"#{data['candidate']} is queued", event)

    def _see_evaluation(self, event: Event) -> None:
        data = event.data
        if event.kind is EventKind.EVALUATION_STARTED:
            self.evaluating.add(data["candidate"])
            self._tell(data["candidate"], f"#{data['candidate']} is evaluated", event)
        elif event.kind is EventKind.EVALUATION_REQUEUED:
            self.evaluating.discard(data["candidate"])
        elif event.kind is EventKind.EVALUATION_DONE:
            self._see_result(event, data)

    def _see_result(self, event: Event, data: dict[str, Any]) -> None:
        seq: int = data["candidate"]
        self.evaluating.discard(seq)
        self.evaluated += 1
        if data["level"] == "quick":
            self.done, self.known = data["done"], data["known"]
        if orders(data):
            self.best.see(data)
            self.speeds[seq] = speed_words(data) or data["status"]
        self._tell(seq, f"#{seq} {data['status']} {speed_words(data)}".rstrip(), event)

    def _tell(self, candidate: int, doing: str, event: Event) -> None:
        branch = self.branches.get(self._branch_of.get(candidate, ""))
        if branch is not None:
            branch.doing, branch.since_us = doing, event.at_us


_ROUNDS_SHOWN = 6
_BRANCHES_SHOWN = 12


def run_screen(watch: RunWatch, now_us: int) -> RenderableType:
    """Return the view at `now_us`, Unix microseconds: the time is the caller's, so it moves on."""
    return Group(*_parts(watch, now_us))


def _parts(watch: RunWatch, now_us: int) -> Iterator[RenderableType]:
    since = _clock(now_us - watch.begun_us) if watch.begun_us else ""
    yield Text(f"{watch.kernel}  {watch.phase}  {since}".strip(), style="bold")
    yield Text(watch.best.text, style="green" if watch.best.cost is not None else "dim")
    yield Text(work_words(watch))
    if watch.doing:
        elapsed_us = now_us - watch.doing_since_us
        words, left = counted_down(watch.doing, elapsed_us / 1e6)
        yield Text(f"{words}{left} ({_clock(elapsed_us)})", style="dim")
    if watch.calls or watch.open_calls:
        yield Text(_spend(watch))
    if watch.rounds:
        yield _rounds_table(watch)
    if watch.branches:
        yield _branches_table(watch, now_us)


def work_words(watch: RunWatch) -> str:
    """Return how many candidates were evaluated of how many, how fast, and the time left."""
    rate = watch.evaluations_per_minute
    if not watch.known:
        return "no candidate yet"
    words = f"{watch.done} of {watch.known} candidates evaluated, {len(watch.evaluating)} under way"
    return words if rate is None else f"{words}, {rate:.1f} per minute{watch.left_words}"


def under_way(watch: RunWatch) -> str:
    """Return what a run does now, in one line: its evaluations, or else its phase."""
    return work_words(watch) if watch.evaluating else watch.phase


def _spend(watch: RunWatch) -> str:
    limit = "" if watch.limit_microusd is None else f" of ${watch.limit_microusd / 1e6:.2f}"
    spent = watch.spent_microusd
    usd = "no cost reported" if spent is None else f"${spent / 1e6:.4f}{limit}"
    return f"{usd}, {watch.tokens:,} tokens in {watch.calls} calls, {watch.open_calls} open"


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
