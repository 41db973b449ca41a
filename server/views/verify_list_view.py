"""Several verified receipts as text: one row for each workload, then what did not reproduce."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from kopt.kernels.verify_list_result import VerifiedReceipt, VerifyListResult
from kopt.kernels.verify_result import Reproduction, VerifyResult, WorkloadReproduction
from kopt.tools.facts.bench_words import ACCEPTED, SPEEDUPS, ratio_digits

from .tables import View

_WORDS: dict[Reproduction, str] = {
    "reproduced": "reproduced",
    "not_reproduced": "not reproduced",
    "other_device": "measured on another device",
    "unavailable": "not measured",
}
_NUMBERS = ("receipt", "accepted", "now", "95 % interval")


def verify_list_view(found: VerifyListResult) -> View:
    """Yield the table, its sums and every reason."""
    results = [entry.result for entry in found.results if entry.result is not None]
    if results:
        yield _table(results)
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
    yield Text(_sums(found), "bold green" if _is_clean(found) else "bold red")


def _is_clean(found: VerifyListResult) -> bool:
    return found.count("reproduced") == found.planned


def _sums(found: VerifyListResult) -> str:
    parts = [f"{found.count('reproduced')} of {found.planned} receipts reproduced"]
    for reproduction, words in _WORDS.items():
        count = found.count(reproduction)
        if count and reproduction != "reproduced":
            parts.append(f"{count} {words}")
    if found.faults:
        parts.append(f"{len(found.faults)} could not be verified")
    missing = found.planned - len(found.results)
    if missing:
        parts.append(f"{missing} not reached")
    return f"{', '.join(parts)}, {found.elapsed_s:.0f} s"


def _table(results: list[VerifyResult]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("kernel", *_NUMBERS, "verdict", "against", "outcome"):
        table.add_column(
            column, justify="right" if column in _NUMBERS else "left", no_wrap=column == "kernel"
        )
    for result in results:
        outcome = _WORDS[result.reproduction]
        problem = result.kernel.removesuffix(result.workloads[0].workload)
        for entry in result.workloads:
            table.add_row(f"{problem}{entry.workload}", *_cells(entry), outcome)
    return table


def _cells(entry: WorkloadReproduction) -> Iterator[str]:
    low, high = entry.accepted_range
    yield f"{entry.receipt_speedup:.3f}x"
    yield f"{low:.3f} to {high:.3f}"
    if entry.speedup is None or entry.interval is None:
        yield from ("-", "-")
    else:
        digits = ratio_digits(entry.interval)
        yield f"{entry.speedup:.3f}x"
        yield f"{entry.interval[0]:.{digits}f} to {entry.interval[1]:.{digits}f}"
    yield "-" if entry.verdict is None else entry.verdict.replace("_", " ")
    yield entry.baseline or "-"


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
