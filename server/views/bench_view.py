"""A benchmark as text: the verdict in words first, then times, then what stands behind them.

Every number says how it came about: measured on the device, computed from the definition and data
sheets, or estimated.
"""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from kopt.kernels.bench_result import BenchResult, Comparison, Latency
from kopt.kernels.status import Status, Verdict
from kopt.tools.facts.wording import short_id

from .bench_facts import fact_lines, full_fact_lines
from .bench_words import VERDICT_STYLES, verdict_words
from .diagnostics import advice_text, diagnostics_text, status_text, uncovered_lines
from .tables import View


def bench_view(name: str, result: BenchResult, is_full: bool) -> View:
    """Yield the result of timing the file `name`; `is_full` adds the spread and the set-up."""
    yield _verdict_line(result)
    gpu = "" if result.gpu is None else f", {result.gpu.name}"
    tune = "".join(f", {key}={value}" for key, value in result.check.values_at().items())
    yield Text(
        f"{result.kernel}  {name} ({short_id(result.candidate)}) on {result.device}{gpu}{tune}",
        style="dim",
    )
    if result.diagnostics:
        yield diagnostics_text(name, result.diagnostics)
    yield from uncovered_lines(result.check.compiled)
    if result.status is not Status.PASSED:
        yield advice_text(result.status)
    if result.latency is not None:
        yield _times_table(result, is_full)
    lines = full_fact_lines(result) if is_full else fact_lines(result)
    yield from (Text(line) for line in lines)
    if result.verdict is Verdict.ESTIMATED:
        archs = " and ".join(dict.fromkeys(build.arch for build in result.check.compiled.builds))
        yield Text(
            f"Nothing here was measured: estimates for {archs} (docs/estimate.md). On a machine"
            " with a GPU: --device cuda:0.",
            "bold yellow",
        )


def _verdict_line(result: BenchResult) -> Text:
    if result.verdict is None:
        return Text.assemble(status_text(result.status), "  not timed")
    style = VERDICT_STYLES[result.verdict]
    main = result.comparisons[0] if result.comparisons else None
    return Text(verdict_words(result.verdict, main), style)


def _times_table(result: BenchResult, is_full: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("timed", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    if is_full:
        for column in ("p10", "p90", "least", "replays"):
            table.add_column(column, justify="right")
    for column in ("speedup", "95 % interval", "pairs", "verdict"):
        table.add_column(column, justify="left" if column == "verdict" else "right")
    spread = 4 if is_full else 0
    assert result.latency is not None  # the caller looked
    table.add_row("candidate", *_latency_cells(result.latency, is_full))
    for comparison in result.comparisons:
        latency = comparison.baseline_latency
        cells = ["-", *[""] * spread] if latency is None else _latency_cells(latency, is_full)
        table.add_row(comparison.baseline.label, *cells, *_comparison_cells(comparison))
    if result.null_kernel_us is not None:
        table.add_row("empty kernels", f"{result.null_kernel_us:.3f} us measured")
    return table


def _latency_cells(latency: Latency, is_full: bool) -> list[str]:
    cells = [f"{latency.median_us:.3f} us {latency.provenance}"]
    if not is_full:
        return cells
    if latency.spread is None:
        return [*cells, *["-"] * 4]
    return [*cells, *(f"{part:.3f}" for part in latency.spread), str(latency.replays)]


def _comparison_cells(comparison: Comparison) -> Iterator[str]:
    speedup, interval = comparison.speedup, comparison.interval
    yield "-" if speedup is None else f"{speedup:.3f}x"
    yield "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
    yield str(comparison.pairs or "-")
    yield comparison.verdict.value.replace("_", " ")
