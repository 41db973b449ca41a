"""The benchmarks of all kernels as one table: on a terminal, and as Markdown."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from kopt.kernels.bench_all_result import BenchAllResult, BenchRow
from kopt.kernels.bench_result import BenchResult, Comparison
from kopt.kernels.status import Status

from .tables import View

COLUMNS = ("kernel", "source", "us", "baseline", "its us", "speedup", "95 % interval", "verdict")
NUMBERS = ("us", "its us", "speedup", "95 % interval")
EXPLANATION = (
    "All times and speedups are measured: medians of one call with a cold L2, and paired ratios of"
    " baseline time / kernel time."
)


def bench_table_view(table: BenchAllResult) -> View:
    """Yield the table with one row for each kernel and baseline, then what was not timed."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in COLUMNS:
        shown.add_column(column, justify="right" if column in NUMBERS else "left")
    for row in _rows(table.rows):
        shown.add_row(*row)
    left_out = (f"Not timed: {line}" for line in _left_out(table))
    lines = (f"{_device(table)}. {EXPLANATION}", *_warm(table), *_missing(table), *left_out)
    yield shown
    yield from (Text(line) for line in lines)


def bench_table_markdown(table: BenchAllResult) -> str:
    """Return the same as Markdown, for a document."""
    rules = ("---:" if column in NUMBERS else "---" for column in COLUMNS)
    rows = [COLUMNS, tuple(rules), *_rows(table.rows)]
    grid = "\n".join(f"| {' | '.join(_escape(cell) for cell in row)} |" for row in rows)
    left_out = "\n".join(f"- {_escape(line)}" for line in _left_out(table))
    explanation = " ".join((EXPLANATION, *_warm(table), *_missing(table)))
    text = f"{_device(table)}. {explanation}\n\n{grid}\n"
    return f"{text}\nNot timed:\n\n{left_out}\n" if left_out else text


def _device(table: BenchAllResult) -> str:
    gpu = table.gpu
    return f"{gpu.name} ({table.device}), driver {gpu.driver_version}, CUDA {gpu.cuda_version}"


def _rows(entries: Sequence[BenchRow]) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        result = entry.result
        if result is None:
            yield (entry.kernel, entry.source, *["-"] * 5, "not timed")
        elif result.status is not Status.PASSED or not result.comparisons:
            yield (entry.kernel, entry.source, *["-"] * 5, result.status.value)
        else:
            for comparison in result.comparisons:
                yield _row(entry, result, comparison)


def _row(entry: BenchRow, result: BenchResult, comparison: Comparison) -> tuple[str, ...]:
    ours, theirs = result.latency, comparison.baseline_latency
    interval = comparison.interval
    return (
        entry.kernel,
        entry.source,
        "-" if ours is None else f"{ours.median_us:.3f}",
        comparison.baseline.label,
        "-" if theirs is None else f"{theirs.median_us:.3f}",
        "-" if comparison.speedup is None else f"{comparison.speedup:.3f}x",
        "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}",
        comparison.verdict.value.replace("_", " "),
    )


def _missing(table: BenchAllResult) -> Iterator[str]:
    """Yield what is said of a table that was interrupted."""
    missing = table.planned - len(table.rows)
    if missing:
        yield f"INCOMPLETE: {missing} of {table.planned} rows were not reached."


def _warm(table: BenchAllResult) -> Iterator[str]:
    """Yield the kernels whose times are not cold, if there are any."""
    results = (entry.result for entry in table.rows)
    rotated = (one for one in results if one is not None and one.rotation is not None)
    kernels = dict.fromkeys(
        one.kernel for one in rotated if one.rotation is not None and not one.rotation.is_cold
    )
    if kernels:
        yield f"L2 WARM, because the buffer sets do not fill it twice: {', '.join(kernels)}."


def _left_out(table: BenchAllResult) -> Iterator[str]:
    """Yield what has no time in the table and why, each reason once with all its kernels."""
    reasons: dict[str, list[str]] = {}
    for entry in table.rows:
        for reason in _reasons(entry):
            kernels = reasons.setdefault(reason, [])
            if entry.kernel not in kernels:
                kernels.append(entry.kernel)
    for reason, kernels in reasons.items():
        yield f"{', '.join(kernels)}: {reason}"


def _reasons(entry: BenchRow) -> Iterator[str]:
    result = entry.result
    if result is None:
        yield f"{entry.source}: {entry.error}"
        return
    if result.status is not Status.PASSED:
        said = result.diagnostics[0].message if result.diagnostics else "no more is known"
        yield f"{entry.source}: {result.status}, {said}"
    for path in result.rejected:
        pdl = "on" if path.pdl else "off"
        yield f"{path.name} (PDL {pdl}): {path.status.replace('_', ' ')}, {path.reason}"


def _escape(cell: str) -> str:
    """Return `cell` so that it stays one cell: names and reasons come from elsewhere."""
    return " ".join(cell.replace("|", "\\|").split())
