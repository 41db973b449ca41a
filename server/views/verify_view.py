"""A verified receipt as text: whether it reproduces, then both measurements side by side."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from kopt.kernels.receipt import Receipt
from kopt.kernels.verify_result import Reproduction, VerifyResult, WorkloadReproduction
from kopt.tools.facts.bench_words import ACCEPTED, SPEEDUPS, ratio_digits
from kopt.tools.facts.wording import short_id

from .tables import View

_WORDS: dict[Reproduction, tuple[str, str]] = {
    "reproduced": ("Reproduced", "bold green"),
    "not_reproduced": ("Not reproduced", "bold red"),
    "other_device": ("Measured on another device: neither reproduced nor refuted", "bold yellow"),
    "unavailable": ("Not verified", "bold yellow"),
}


def verify_view(name: str, receipt: Receipt, result: VerifyResult) -> View:
    """Yield the result of verifying `receipt`, which the file `name` holds."""
    words, style = _WORDS[result.reproduction]
    yield Text(words, style)
    yield Text(
        f"{name}: {receipt.source_name} ({short_id(receipt.candidate)}) of {receipt.problem},"
        f" promoted {receipt.promoted_at} on {receipt.device.name}",
        style="dim",
    )
    if result.gpu is not None:
        yield Text(
            f"Verified on {result.device}, {result.gpu.name}, driver {result.gpu.driver_version}",
            style="dim",
        )
    yield from (Text(f"- {reason}") for reason in result.reasons)
    yield from _cubins(result)
    yield _table(result)
    yield Text(f"{SPEEDUPS} {ACCEPTED}", style="dim")
    yield from (Text(f"Differs from then: {note}", "yellow") for note in result.notes)


def _cubins(result: VerifyResult) -> Iterator[Text]:
    found = result.cubins
    if found is not None:
        same = "the same binary as then" if found.same else "another binary than then"
        yield Text(f"Compiled again with {found.toolchain}: {same}")


def _table(result: VerifyResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload", no_wrap=True)
    for column in ("receipt", "its range", "accepted", "now", "95 % interval"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("against", no_wrap=True)
    for entry in result.workloads:
        table.add_row(*_cells(entry))
    return table


def _cells(entry: WorkloadReproduction) -> Iterator[str]:
    yield entry.workload
    yield f"{entry.receipt_speedup:.3f}x"
    yield _interval(entry.receipt_range, 3)
    yield _interval(entry.accepted_range, 3)
    if entry.speedup is None or entry.interval is None:
        yield from ("-", "-")
    else:
        yield f"{entry.speedup:.3f}x"
        yield _interval(entry.interval, ratio_digits(entry.interval))
    yield "-" if entry.verdict is None else entry.verdict.replace("_", " ")
    yield entry.baseline or "-"


def _interval(interval: tuple[float, float], digits: int) -> str:
    return f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"
