"""A self-test as text: samples that went wrong, then how many of each kind were caught."""

from collections.abc import Iterator

from rich.text import Text

from kopt.config.counted import counted
from kopt.tools.selftest.result import FLAWS, SampleOutcome, SampleResult, SelftestResult

from .tables import Cell, View, grid, percent_cell

_HEADS = ("flaw", "samples#", "right status#", "other status#", "passed#", "caught#")
_OUTCOMES = (
    SampleOutcome.AS_EXPECTED,
    SampleOutcome.CAUGHT_OTHERWISE,
    SampleOutcome.MISSED,
)


def selftest_view(result: SelftestResult) -> View:
    """Yield what went wrong, the catch rate of each kind of flaw, and the refusals of good ones."""
    for sample in result.samples:
        if sample.outcome in (SampleOutcome.MISSED, SampleOutcome.REFUSED):
            yield _failure(sample)
    yield grid(*_HEADS, rows=_rows(result))
    good = [sample for sample in result.samples if sample.flaw is None]
    refused = sum(sample.outcome is SampleOutcome.REFUSED for sample in good)
    yield Text(f"honest candidates: {refused} of {len(good)} refused")
    yield Text(_ending(result), style="bold green" if result.holds else "bold red")


def _failure(sample: SampleResult) -> Text:
    what = "passed, although it is wrong" if sample.flaw else "was refused, although it is right"
    return Text.assemble(
        (sample.name, "bold red"),
        f" {what}: expected {sample.expected}, got {sample.status} ({sample.said})",
    )


def _rows(result: SelftestResult) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each kind of flaw that was tested, and one for all."""
    evil = [sample for sample in result.samples if sample.flaw is not None]
    for flaw in (*FLAWS, None):
        row = [sample for sample in evil if flaw in (sample.flaw, None)]
        if not row:
            continue
        counts = [sum(one.outcome is outcome for one in row) for outcome in _OUTCOMES]
        caught = percent_cell((len(row) - counts[-1]) / len(row))
        yield (flaw or "all", str(len(row)), *map(str, counts), caught)


def _ending(result: SelftestResult) -> str:
    where = f"{result.device} ({result.arch})"
    done = counted(len(result.samples), "sample")
    if len(result.samples) < result.planned:
        done += f" of {result.planned}"
    return f"{done} on {where}: {'all as they must be' if result.holds else 'not as they must be'}"
