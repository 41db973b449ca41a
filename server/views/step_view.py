"""The result of a step as text: what it did, who is kept, who is not and why, what to try next."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kopt.search.step.result import BeamMember, StepResult

from .diagnostics import diagnostics_text, status_text
from .profile_view import bottleneck_lines
from .run_view import provenance_note, seq_cell, speed_cell, time_cell, tune_text
from .tables import View, count_cell, grid

COLUMNS = ("rank", "candidate", "family", "tune", "time", "speed", "registers", "hypothesis")
_LONGEST_NOTE = 60


def step_view(result: StepResult) -> View:
    """Yield what a step did and what follows from it; every time says how it came about."""
    yield Text(f"\n{result.run}  {result.kernel}", style="bold")
    yield Text(f"{result.status}, on {result.device}: {result.message}")
    yield from _candidates(result)
    yield from _retired(result)
    yield from _families(result)
    yield from _bottleneck(result)
    yield from _suggestions(result)
    if result.beam:  # last: the suggestions fill a screen
        yield Text("\nBeam", style="bold")
        yield _beam_table(result)
        yield provenance_note(result)


def _candidates(result: StepResult) -> Iterator[RenderableType]:
    for one in result.candidates:
        parts: list[str | Text] = [f"  #{one.seq} "]
        parts.append("not finished" if one.status is None else status_text(one.status))
        repeated = f", known since round {one.round}" if one.repeats else ""
        parts.append(f" {one.family} {tune_text(one.tune)}{repeated}")
        if one.diagnostic is None and one.summary:
            parts.append(f": {one.summary}")
        yield Text.assemble(*parts)
        if one.diagnostic is not None:
            yield diagnostics_text(f"    #{one.seq}", [one.diagnostic])


def _beam_table(result: StepResult) -> Table:
    table = grid(*COLUMNS, whole=[name for name in COLUMNS if name not in ("tune", "hypothesis")])
    for member in result.beam:
        style = "bold green" if member.seq == result.winner else ""
        table.add_row(*_beam_cells(member), style=style)
    return table


def _beam_cells(member: BeamMember) -> Iterator[str]:
    yield str(member.rank)
    yield seq_cell(member)
    yield member.family
    yield tune_text(member.tune)
    yield time_cell(member.latency_us, member.provenance)
    yield speed_cell(member)
    yield count_cell(member.registers_per_thread)
    note = " ".join(member.note.split())
    yield note if len(note) <= _LONGEST_NOTE else f"{note[:_LONGEST_NOTE]}..."


def _retired(result: StepResult) -> Iterator[RenderableType]:
    if result.retired:
        yield Text("\nNot in the beam", style="bold")
    for one in result.retired:
        left = " (left it)" if one.was_in_beam else ""
        yield Text(f"  #{one.seq}{left}: {one.why}")


def _families(result: StepResult) -> Iterator[RenderableType]:
    if result.families:
        words = (
            f"{one.family} {one.state}" + ("" if one.best is None else f" (#{one.best})")
            for one in result.families
        )
        yield Text(f"\nFamilies: {', '.join(words)}; {len(result.untried_families)} not tried")


def _bottleneck(result: StepResult) -> Iterator[RenderableType]:
    if result.bottleneck is not None:
        yield from bottleneck_lines(result.bottleneck)
    elif result.bottleneck_problem is not None:
        yield Text(f"Bottleneck: unavailable: {result.bottleneck_problem}")


def _suggestions(result: StepResult) -> Iterator[RenderableType]:
    if result.suggestions:
        yield Text("\nWhat to try", style="bold")
    for number, one in enumerate(result.suggestions, start=1):
        yield Text(f"  {number}. {one.text}")
        if one.document is not None:
            yield Text(f"     kopt docs show {one.document}")
