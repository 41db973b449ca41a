"""The profiles of tune choices as a table: only what differs between them has a column."""

from collections.abc import Callable

from rich.text import Text

from kopt.kernels.profile_result import ChoiceProfile, ProfileChoices
from kopt.kernels.status import Status
from kopt.tools.facts.wording import tune_words

from .diagnostics import profiled_text
from .tables import NOTHING, View, count_cell, grid, percent_cell, us_cell, words_cell

_TIMES: dict[str, Callable[[ChoiceProfile], str]] = {
    "": lambda one: "*" if one.is_default else "",
    "measured us": lambda one: us_cell(one.measured_us),
    "estimated us": lambda one: us_cell(one.estimated_us),
}
_FACTS: dict[str, Callable[[ChoiceProfile], str]] = {
    "blocks": lambda one: count_cell(one.blocks),
    "threads": lambda one: _text(one.threads_per_block),
    "waves": lambda one: NOTHING if one.waves is None else f"{one.waves:.2f}",
    "registers": lambda one: _text(one.registers_per_thread),
    "spilled": lambda one: NOTHING if one.spill_bytes is None else f"{one.spill_bytes} B",
    "occupancy": lambda one: percent_cell(one.theoretical_occupancy),
    "instructions": lambda one: _text(one.instructions),
    "mostly": lambda one: words_cell(one.mostly or None),
    "status": lambda one: one.status.value,
}
_TEXTS = ("mostly", "status")
_EXPLANATION = (
    "Estimated times order choices and claim nothing about microseconds: differences below some ten"
    " percent mean nothing, and the model sees neither cache hints nor where the next launch is"
    " triggered. No value was checked. * is the default."
)


def profile_choices_view(file: str, profile: ProfileChoices) -> View:
    """Yield the table of the choices of `file`."""
    tunes = {name: _tune_cell(name) for name in profile.choices[0].tune}
    columns = _TIMES | tunes | _FACTS
    cells = {name: [cell(one) for one in profile.choices] for name, cell in columns.items()}
    # One choice has nothing to differ from: all of it is shown.
    differing = [name for name in cells if len(set(cells[name])) > 1 or len(profile.choices) == 1]
    yield profiled_text(file, profile)
    heads = (name if name in _TEXTS else f"{name}#" for name in differing)
    yield grid(*heads, rows=zip(*(cells[name] for name in differing), strict=True))
    same = {name: found[0] for name, found in cells.items() if name not in differing}
    words = [f"{name} {cell}" for name, cell in same.items() if name and cell != NOTHING]
    if words:
        yield Text(f"The same in all: {', '.join(words)}.")
    if profile.set_by_variant:
        yield Text(f"Set by the workload's variant: {', '.join(profile.set_by_variant)}.")
    for one in profile.choices:
        if one.status is not Status.PASSED:
            why = f", {one.why}" if one.why else ""
            yield Text(f"{tune_words(one.tune)}: {one.status.value}{why}")
    yield Text(_EXPLANATION)


def _tune_cell(name: str) -> Callable[[ChoiceProfile], str]:
    return lambda one: str(one.tune[name])


def _text(count: int | None) -> str:
    return NOTHING if count is None else str(count)
