"""The benchmarks of all kernels as one table: on a terminal, and as Markdown."""

from collections.abc import Iterator

from rich.text import Text

from kopt.kernels.bench_result import BenchAllResult, BenchResult, BenchRow, Comparison
from kopt.kernels.status import Status
from kopt.tools.facts.bench_facts import l2_words, rejected_words

from .tables import (
    NOTHING,
    View,
    grid,
    interval_cell,
    markdown_cell,
    markdown_table,
    ratio_cell,
    us_cell,
    words_cell,
)

_SPEED = ("speedup#", "95 % interval#", "verdict")
COLUMNS = ("kernel", "source", "us#", "baseline", "baseline us#", *_SPEED)
EXPLANATION = (
    "All times and speedups are measured: medians of one call with a cold L2, and paired ratios of"
    " baseline time / kernel time."
)


def bench_table_view(table: BenchAllResult) -> View:
    """Yield the table with one row for each kernel and baseline, then what was not timed."""
    yield grid(*COLUMNS, rows=_rows(table))
    yield from map(Text, (f"{_device(table)}. {EXPLANATION}", *_remarks(table)))
    yield from (Text(f"Not timed: {line}") for line in _left_out(table))


def bench_table_markdown(table: BenchAllResult) -> str:
    """Return the same as Markdown, for a document."""
    explanation = " ".join((EXPLANATION, *_remarks(table)))
    text = f"{_device(table)}. {explanation}\n\n{markdown_table(COLUMNS, _rows(table))}\n"
    left_out = "\n".join(f"- {markdown_cell(line)}" for line in _left_out(table))
    return f"{text}\nNot timed:\n\n{left_out}\n" if left_out else text


def _device(table: BenchAllResult) -> str:
    gpu = table.gpu
    return f"{gpu.name} ({table.device}), driver {gpu.driver_version}, CUDA {gpu.cuda_version}"


def _rows(table: BenchAllResult) -> Iterator[tuple[str, ...]]:
    for entry in table.rows:
        result = entry.result
        if result is None:
            yield (entry.kernel, entry.source, *[NOTHING] * 5, "not timed")
        elif result.status is not Status.PASSED or not result.comparisons:
            yield (entry.kernel, entry.source, *[NOTHING] * 5, result.status.value)
        else:
            for comparison in result.comparisons:
                yield _row(entry, result, comparison)


def _row(entry: BenchRow, result: BenchResult, comparison: Comparison) -> tuple[str, ...]:
    ours, theirs = result.latency, comparison.baseline_latency
    return (
        entry.kernel,
        entry.source,
        us_cell(None if ours is None else ours.median_us),
        comparison.baseline.label,
        us_cell(None if theirs is None else theirs.median_us),
        ratio_cell(comparison.speedup),
        interval_cell(comparison.interval),
        words_cell(comparison.verdict),
    )


def _remarks(table: BenchAllResult) -> Iterator[str]:
    """Yield the kernels whose times are not cold, and how much of the table is missing."""
    warm: dict[str, dict[str, None]] = {}
    for entry in table.rows:
        rotation = None if entry.result is None else entry.result.rotation
        if rotation is not None and not rotation.is_cold:
            warm.setdefault(l2_words(rotation), {})[entry.kernel] = None
    yield from (f"Times are {words}: {', '.join(kernels)}." for words, kernels in warm.items())
    missing = table.planned - len(table.rows)
    if missing:
        yield f"INCOMPLETE: {missing} of {table.planned} rows were not reached."


def _left_out(table: BenchAllResult) -> Iterator[str]:
    """Yield what has no time in the table and why, each reason once with all its kernels."""
    kernels: dict[str, dict[str, None]] = {}
    for entry in table.rows:
        for reason in _reasons(entry):
            kernels.setdefault(reason, {})[entry.kernel] = None
    yield from (f"{', '.join(named)}: {reason}" for reason, named in kernels.items())


def _reasons(entry: BenchRow) -> Iterator[str]:
    result = entry.result
    if result is None:
        yield f"{entry.source}: {entry.error}"
        return
    if result.status is not Status.PASSED:
        said = result.diagnostics[0].message if result.diagnostics else "no more is known"
        yield f"{entry.source}: {result.status}, {said}"
    yield from map(rejected_words, result.rejected)
