"""What memory and a run had to do with each other, in words and tables; nothing is escaped yet."""

from collections.abc import Iterator
from math import exp

from kopt.kernels.status import Status
from kopt.search.knowledge.edits import (
    AddEntry,
    AddNote,
    AddState,
    AddTechnique,
    AdjustPrior,
    Deprecate,
    Edit,
)
from kopt.search.knowledge.policy.calibration import Calibration

from .candidate_report import ratio_words
from .memory import MemoryStep, MemoryUse
from .sections import Table


def memory_table(use: MemoryUse) -> Table:
    """Return a row for each step: where it began, what was expected, what came."""
    heads = (
        *("Candidate#", "State before", "Technique", "Predicted speed (estimated)"),
        *("Found speed", "Outcome", "Bottleneck after"),
    )
    return Table(heads, tuple(tuple(_cells(step)) for step in use.steps))


def calibration_table(use: MemoryUse) -> Table:
    """Return a row for each architecture, and for each state on it: how good predictions were."""
    heads = (
        *("State", "On", "Compared#", "Without effect#", "Failed#"),
        *("Found over predicted#", "Off by, mean#", "Within their interval"),
    )
    return Table(heads, tuple(_calibration_cells(one) for one in use.calibration))


def change_lines(use: MemoryUse) -> Iterator[str]:
    """Yield what the learner changed, and what it said that was not taken."""
    for change in use.changes:
        edit = change.edit
        samples = f" (by {', '.join(edit.evidence)})" if edit.evidence else ""
        yield f"after round {change.round}: {_edit_words(edit)}: {edit.reason}{samples}"
    yield from (f"not taken: {text}" for text in use.dropped)


def _cells(step: MemoryStep) -> Iterator[str]:
    yield f"#{step.candidate}{_part_words(step.part)}"
    yield step.state
    after = f" (after {step.previous})" if step.previous else ""
    yield f"{' then '.join(step.techniques)}{after}"
    yield ratio_words(step.predicted, step.predicted_interval)
    found = ratio_words(step.found, step.found_interval)
    yield f"{found} {step.provenance.value}" if found else _failure_words(step)
    yield step.outcome.replace("_", " ")
    yield step.bottleneck_after or ""


def _part_words(part: str | None) -> str:
    match part:
        case None:
            return ""
        case "refuted":
            return ", refuted"
        case other if other.startswith("from"):
            return f" over #{other.removeprefix('from')}"
        case switch:
            return f", {switch}"


def _failure_words(step: MemoryStep) -> str:
    """Return why there is no speed: one that passed its check was not credited with any."""
    return "passed, not credited" if step.status is Status.PASSED else step.status.value


def _calibration_cells(one: Calibration) -> tuple[str, ...]:
    inside = "-"
    if one.coverage is not None:
        inside = f"{round(one.coverage * one.with_interval)} of {one.with_interval}"
    return (
        one.state or "all",
        one.arch_key,
        str(one.compared),
        str(one.without_effect),
        str(one.failed),
        "-" if one.reward is None else f"{exp(one.reward):.3f}x",
        "-" if one.discrepancy is None else f"{exp(one.discrepancy):.3f}x",
        inside,
    )


def _edit_words(edit: Edit) -> str:
    match edit:
        case AddState():
            return f"new state {edit.state.id}"
        case AddTechnique():
            return f"new technique {edit.technique.id}"
        case AddNote():
            return f"note on {_entry(edit.techniques, edit.state)}: {edit.text}"
        case AddEntry() | AdjustPrior():
            entry = _entry(edit.techniques, edit.state)
            return f"{entry} is expected to give {exp(edit.gain):.2f}x"
        case Deprecate():
            return f"{_entry(edit.techniques, edit.state)} is not offered any more"
        case _:
            return f"{_entry(edit.techniques, edit.state)} is offered again"


def _entry(techniques: tuple[str, ...], state: str) -> str:
    return f"{' then '.join(techniques)} in {state}"
