"""A promotion as text: the outcome, why not, every measurement, and the files."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.receipt import WorkloadEvidence
from kopt.kernels.status import Status
from kopt.tools.facts.bench_words import SPEEDUPS, percent, ratio_digits
from kopt.tools.facts.wording import short_id

from .diagnostics import advice_text, diagnostics_text, uncovered_lines
from .tables import View

_WORDS = {
    "promoted": ("Promoted", "bold green"),
    "kept_existing": ("Not written: the existing winner stays", "bold yellow"),
    "not_promoted": ("Not promoted", "bold red"),
}


def promotion_view(name: str, result: PromotionResult) -> View:
    """Yield the result of promoting the file `name`."""
    words, style = _WORDS[result.outcome]
    yield Text(f"{words}{_gain(result)}", style)
    yield Text(
        f"{name} ({short_id(result.candidate)}) on {result.device}, {result.gpu.name};"
        f" domain: {', '.join(result.domain)}",
        style="dim",
    )
    yield from (Text(f"- {reason}") for reason in result.reasons)
    if result.check.status is not Status.PASSED and result.check.diagnostics:
        yield diagnostics_text(name, result.check.diagnostics)
    if result.status is not Status.PASSED:
        yield advice_text(result.status)
    yield from (Text(f"In its code: {text}", "yellow") for text in result.check.compiled.flagged)
    yield from uncovered_lines(result.check.compiled)
    yield from _sanitizer(result)
    if result.attempts:
        yield _attempts(result)
        yield Text(SPEEDUPS, style="dim")
    if result.narrower is not None:
        words = result.narrower.words
        yield Text(f"{words[0].upper()}{words[1:]}.", "yellow")
    if len(result.workloads) > 1:
        yield from (Text(f"{entry.workload}: {_speedup(entry)}") for entry in result.workloads)
    yield from (
        Text(f"Written: {file.source_path} and {file.receipt_path}")
        for file in result.files
        if file.action == "written"
    )
    receipts = [file.receipt_path for file in result.files if file.action == "written"]
    if receipts:
        yield Text(f"Measure it again with: kopt verify {' '.join(receipts)}")


def _gain(result: PromotionResult) -> str:
    """Return what was gained; nothing where no winner was written: a number there misleads."""
    mean = result.geometric_mean_speedup
    if result.outcome != "promoted" or mean is None:
        return ""
    if len(result.workloads) == 1:
        return f": {_speedup(result.workloads[0])}"
    return f": {mean:.3f}x faster (geometric mean of {len(result.workloads)} workloads)"


def _speedup(entry: WorkloadEvidence) -> str:
    low, high = entry.range
    return (
        f"{entry.speedup:.3f}x faster than {entry.baseline.label}, {low:.3f} to {high:.3f} in"
        f" {len(entry.measurements)} measurements"
    )


def _sanitizer(result: PromotionResult) -> Iterator[Text]:
    for one in result.sanitizer:
        said = ", ".join(f"{run.tool} {run.outcome}" for run in one.runs) or one.status.value
        yield Text(f"compute-sanitizer, {one.kernel}: {said}")
        reasons = dict.fromkeys(run.reason for run in one.runs if run.reason is not None)
        yield from (Text(f"  {reason}", "yellow") for reason in reasons)


def _attempts(result: PromotionResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload", no_wrap=True)
    for column in ("process", "allocation", "speedup", "95 % interval", "noise"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("against", no_wrap=True)
    for one in result.attempts:
        interval = "-"
        if one.interval is not None:
            digits = ratio_digits(one.interval)
            interval = f"{one.interval[0]:.{digits}f} to {one.interval[1]:.{digits}f}"
        table.add_row(
            one.workload,
            str(one.process),
            str(one.allocation),
            "-" if one.speedup is None else f"{one.speedup:.3f}x",
            interval,
            "-" if one.noise_threshold is None else percent(one.noise_threshold),
            (one.status if one.verdict is None else one.verdict).replace("_", " "),
            one.baseline or "-",
        )
    return table
