"""Receipts as text: one that was verified, several in a table, the promotion that writes them."""

from collections.abc import Iterator

from rich.text import Text

from kopt.kernels.promotion_result import PromotionAttempt, PromotionResult
from kopt.kernels.receipt import Receipt, WorkloadEvidence
from kopt.kernels.status import Status
from kopt.kernels.verify_result import (
    Reproduction,
    VerifiedReceipt,
    VerifyListResult,
    VerifyResult,
    WorkloadReproduction,
)
from kopt.tools.bench.receipt_seal import STANDINGS
from kopt.tools.facts.bench_facts import ACCEPTED, SPEEDUPS, percent, ratio_digits
from kopt.tools.facts.wording import short_id

from .diagnostics import advice_text, diagnostics_text, uncovered_lines
from .tables import NOTHING, View, grid, interval_cell, ratio_cell, words_cell

_REPRODUCTIONS: dict[Reproduction, tuple[str, str, str]] = {
    "reproduced": ("Reproduced", "bold green", "reproduced"),
    "not_reproduced": ("Not reproduced", "bold red", "not reproduced"),
    "other_device": (
        "Measured on another device: neither reproduced nor refuted",
        "bold yellow",
        "measured on another device",
    ),
    "unavailable": ("Not verified", "bold yellow", "not measured"),
}
"""How a receipt alone is headed, in which style, and what stands in a row of several."""
_PROMOTIONS = {
    "promoted": ("Promoted", "bold green"),
    "kept_existing": ("Not written: the existing winner stays", "bold yellow"),
    "not_promoted": ("Not promoted", "bold red"),
}
_NOW = ("now#", "95 % interval#", "verdict", "against")
_ONE = ("workload", "receipt#", "its range#", "accepted#", *_NOW)
_SEVERAL = ("kernel", "receipt#", "accepted#", *_NOW, "outcome")
_ATTEMPTS = (
    *("workload", "process#", "allocation#", "speedup#", "95 % interval#", "noise#"),
    *("verdict", "against"),
)


def verify_view(name: str, receipt: Receipt, result: VerifyResult) -> View:
    """Yield the result of verifying `receipt`, which the file `name` holds."""
    words, style, _ = _REPRODUCTIONS[result.reproduction]
    yield Text(words, style)
    yield Text(
        f"{name}: {receipt.source_name} ({short_id(receipt.candidate)}) of {receipt.problem},"
        f" promoted {receipt.promoted_at} on {receipt.device.name}",
        style="dim",
    )
    yield Text(f"Before this it was {STANDINGS[result.standing]}", style="dim")
    if result.gpu is not None:
        yield Text(
            f"Verified on {result.device}, {result.gpu.name}, driver {result.gpu.driver_version}",
            style="dim",
        )
    yield from (Text(f"- {reason}") for reason in result.reasons)
    if result.cubins is not None:
        same = "the same binary as then" if result.cubins.same else "another binary than then"
        yield Text(f"Compiled again with {result.cubins.toolchain}: {same}")
    table = grid(*_ONE, whole=_ONE)
    for entry in result.workloads:
        then, accepted, *now = _reproduction_cells(entry)
        table.add_row(entry.workload, then, interval_cell(entry.receipt_range), accepted, *now)
    yield table
    yield Text(f"{SPEEDUPS} {ACCEPTED}", style="dim")
    yield from (Text(f"Differs from then: {note}", "yellow") for note in result.notes)


def verify_list_view(found: VerifyListResult) -> View:
    """Yield the table, its sums and every reason."""
    results = [entry.result for entry in found.results if entry.result is not None]
    if results:
        rows = (row for result in results for row in _verified_rows(result))
        yield grid(*_SEVERAL, rows=rows, whole=("kernel",))
        yield Text(f"{SPEEDUPS} {ACCEPTED}", style="dim")
    shared = _shared(results)
    yield from (Text(f"All {len(results)} receipts: {words}") for words in shared)
    for entry in found.results:
        yield from _remarks(entry, shared)
    devices = dict.fromkeys(
        f"{result.gpu.name}, driver {result.gpu.driver_version}"
        for result in results
        if result.gpu is not None
    )
    yield from (Text(f"Verified on {device}", style="dim") for device in devices)
    is_clean = found.count("reproduced") == found.planned
    yield Text(_sums(found), "bold green" if is_clean else "bold red")


def promotion_view(name: str, result: PromotionResult) -> View:
    """Yield the result of promoting the file `name`."""
    words, style = _PROMOTIONS[result.outcome]
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
    races = result.check.race_check
    if races is not None:
        yield Text(f"Races: {races.words}")
    yield from _sanitizer_lines(result)
    if result.attempts:
        rows = map(list, map(_attempt_cells, result.attempts))
        yield grid(*_ATTEMPTS, rows=rows, whole=_ATTEMPTS)
        yield Text(SPEEDUPS, style="dim")
    if result.narrower is not None:
        words = result.narrower.words
        yield Text(f"{words[0].upper()}{words[1:]}.", "yellow")
    if len(result.workloads) > 1:
        yield from (Text(f"{entry.workload}: {_speedup(entry)}") for entry in result.workloads)
    yield from _written_lines(result)


def _reproduction_cells(entry: WorkloadReproduction) -> Iterator[str]:
    yield ratio_cell(entry.receipt_speedup)
    yield interval_cell(entry.accepted_range)
    if entry.speedup is None or entry.interval is None:
        yield from (NOTHING, NOTHING)
    else:
        yield ratio_cell(entry.speedup)
        yield interval_cell(entry.interval, ratio_digits(entry.interval))
    yield words_cell(entry.verdict)
    yield entry.baseline or NOTHING


def _verified_rows(result: VerifyResult) -> Iterator[tuple[str, ...]]:
    problem = result.kernel.removesuffix(result.workloads[0].workload)
    outcome = _REPRODUCTIONS[result.reproduction][2]
    for entry in result.workloads:
        yield (f"{problem}{entry.workload}", *_reproduction_cells(entry), outcome)


def _sums(found: VerifyListResult) -> str:
    parts = [f"{found.count('reproduced')} of {found.planned} receipts reproduced"]
    for reproduction, (_, _, words) in _REPRODUCTIONS.items():
        count = found.count(reproduction)
        if count and reproduction != "reproduced":
            parts.append(f"{count} {words}")
    if found.faults:
        parts.append(f"{len(found.faults)} could not be verified")
    missing = found.planned - len(found.results)
    if missing:
        parts.append(f"{missing} not reached")
    return f"{', '.join(parts)}, {found.elapsed_s:.0f} s"


def _shared(results: list[VerifyResult]) -> list[str]:
    """Return what holds for each of several receipts, so that it is told once."""
    if len(results) < 2:
        return []
    others = [set(_words(result)) for result in results]
    return [words for words in _words(results[0]) if all(words in other for other in others)]


def _words(result: VerifyResult) -> list[str]:
    return [*result.reasons, *(f"differs from then: {note}" for note in result.notes)]


def _remarks(entry: VerifiedReceipt, shared: list[str]) -> Iterator[Text]:
    name = entry.files[0]
    if len(entry.files) > 1:
        name += f" (and {len(entry.files) - 1} more)"
    if entry.error is not None:
        yield Text(f"Not verified: {name}: {entry.error}", "yellow")
    if entry.result is not None:
        own = (words for words in _words(entry.result) if words not in shared)
        yield from (Text(f"{name}: {words}") for words in own)


def _written_lines(result: PromotionResult) -> Iterator[Text]:
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


def _sanitizer_lines(result: PromotionResult) -> Iterator[Text]:
    for one in result.sanitizer:
        said = ", ".join(f"{run.tool} {run.outcome}" for run in one.runs) or one.status.value
        yield Text(f"compute-sanitizer, {one.kernel}: {said}")
        reasons = dict.fromkeys(run.reason for run in one.runs if run.reason is not None)
        yield from (Text(f"  {reason}", "yellow") for reason in reasons)


def _attempt_cells(one: PromotionAttempt) -> Iterator[str]:
    digits = 3 if one.interval is None else ratio_digits(one.interval)
    yield one.workload
    yield str(one.process)
    yield str(one.allocation)
    yield ratio_cell(one.speedup)
    yield interval_cell(one.interval, digits)
    yield NOTHING if one.noise_threshold is None else percent(one.noise_threshold)
    yield words_cell(one.status if one.verdict is None else one.verdict)
    yield one.baseline or NOTHING
