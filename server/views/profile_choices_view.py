"""The profiles of tune choices as a table: only what differs between them has a column."""

from collections.abc import Callable

from rich.table import Table
from rich.text import Text

from kopt.kernels.profile_choices import ChoiceProfile, ProfileChoices
from kopt.kernels.status import Status
from kopt.tools.facts.wording import short_id, tune_words

from .diagnostics import status_text
from .tables import View

UNKNOWN = "-"
_TIMES: dict[str, Callable[[ChoiceProfile], str]] = {
    "": lambda one: "*" if one.is_default else "",
    "measured us": lambda one: _us(one.measured_us),
    "estimated us": lambda one: _us(one.estimated_us),
}
_FACTS: dict[str, Callable[[ChoiceProfile], str]] = {
    "blocks": lambda one: UNKNOWN if one.blocks is None else f"{one.blocks:,}",
    "threads": lambda one: _text(one.threads_per_block),
    "waves": lambda one: UNKNOWN if one.waves is None else f"{one.waves:.2f}",
    "registers": lambda one: _text(one.registers_per_thread),
    "spilled": lambda one: UNKNOWN if one.spill_bytes is None else f"{one.spill_bytes} B",
    "occupancy": lambda one: (
        UNKNOWN if one.theoretical_occupancy is None else f"{one.theoretical_occupancy:.0%}"
    ),
    "instructions": lambda one: _text(one.instructions),
    "mostly": lambda one: (one.mostly or UNKNOWN).replace("_", " "),
    "status": lambda one: one.status.value,
}


def profile_choices_view(file: str, profile: ProfileChoices) -> View:
    """Yield the table of the choices of `file`."""
    heading = Text.assemble(
        status_text(profile.status),
        f"  {profile.kernel}  {file} ({short_id(profile.candidate)})"
        f"  {profile.arch}, data sheet of {profile.gpu}",
    )
    tunes = {name: _tune_cell(name) for name in profile.choices[0].tune}
    columns = _TIMES | tunes | _FACTS
    cells = {name: [cell(one) for one in profile.choices] for name, cell in columns.items()}
    # One choice has nothing to differ from: all of it is shown.
    differing = [name for name in cells if len(set(cells[name])) > 1 or len(profile.choices) == 1]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in differing:
        table.add_column(name, justify="left" if name in ("mostly", "status") else "right")
    for row in zip(*(cells[name] for name in differing), strict=True):
        table.add_row(*row)
    same = {name: found[0] for name, found in cells.items() if name not in differing}
    words = [f"{name} {cell}" for name, cell in same.items() if name and cell != UNKNOWN]
    lines = [f"The same in all: {', '.join(words)}."] if words else []
    if profile.set_by_variant:
        lines.append(f"Set by the workload's variant: {', '.join(profile.set_by_variant)}.")
    yield heading
    yield table
    yield from map(Text, (*lines, *_failures(profile), _EXPLANATION))


_EXPLANATION = (
    "Estimated times order choices and claim nothing about microseconds: differences below some ten"
    " percent mean nothing, and the model sees neither cache hints nor where the next launch is"
    " triggered. No value was checked. * is the default."
)


def _tune_cell(name: str) -> Callable[[ChoiceProfile], str]:
    return lambda one: str(one.tune[name])


def _failures(profile: ProfileChoices) -> list[str]:
    return [
        f"{tune_words(one.tune)}: {one.status.value}" + (f", {one.why}" if one.why else "")
        for one in profile.choices
        if one.status is not Status.PASSED
    ]


def _us(us: float | None) -> str:
    return UNKNOWN if us is None else f"{us:.3f}"


def _text(count: int | None) -> str:
    return UNKNOWN if count is None else str(count)
