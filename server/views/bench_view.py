"""A benchmark as text: the verdict in words first, then times, then what stands behind them.

Every number says how it came about: measured on the device, computed from the definition and data
sheets, or estimated.
"""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from kopt.kernels.bench_result import BenchResult, Comparison, DeviceState, Latency, PlainCopy
from kopt.kernels.status import Status, Verdict
from kopt.tools.facts.bench_facts import (
    answer_words,
    doubts,
    percent,
    precision_words,
    rejected_words,
)
from kopt.tools.facts.findings import data_sheet_words

from .diagnostics import (
    advice_text,
    candidate_words,
    diagnostics_text,
    status_text,
    uncovered_lines,
)
from .tables import NOTHING, View, grid, interval_cell, ratio_cell, words_cell

VERDICT_STYLES = {
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold red",
    Verdict.INCONCLUSIVE: "bold",
    Verdict.IMPOSSIBLE: "bold red",
    Verdict.NOT_LIKE_FOR_LIKE: "bold yellow",
    Verdict.ESTIMATED: "bold yellow",
}
_SPREAD = ("p10#", "p90#", "least#", "replays#")


def bench_view(name: str, result: BenchResult, is_full: bool) -> View:
    """Yield the result of timing the file `name`; `is_full` adds the spread and the set-up."""
    if result.verdict is None:
        yield Text.assemble(status_text(result.status), "  not timed")
    else:
        style = "bold yellow" if result.is_unproven else VERDICT_STYLES[result.verdict]
        yield Text(answer_words(result.verdict, result), style)
    gpu = "" if result.gpu is None else f", {result.gpu.name}"
    tune = "".join(f", {key}={value}" for key, value in result.check.values_at().items())
    yield Text(f"{candidate_words(name, result)} on {result.device}{gpu}{tune}", style="dim")
    if (precision := precision_words(result)) is not None:
        yield Text(f"Precision {precision}")
    if result.diagnostics:
        yield diagnostics_text(name, result.diagnostics)
    yield from uncovered_lines(result.check.compiled)
    if result.status is not Status.PASSED:
        yield advice_text(result.status)
    if result.latency is not None:
        yield _times_table(result, result.latency, is_full)
    yield from map(Text, _fact_lines(result))
    yield from (Text(f"Doubt: {doubt}", "bold yellow") for doubt in doubts(result))
    yield from map(Text, _comparison_lines(result))
    if is_full:
        yield from map(Text, _set_up_lines(result))
    if result.verdict is Verdict.ESTIMATED:
        check = result.check
        archs = dict.fromkeys(build.arch for build in check.compiled.builds)
        gpus = " and ".join(data_sheet_words(check.device, arch) for arch in archs)
        yield Text(
            f"Nothing here was measured: estimates for {gpus} (docs/estimate.md). On a machine"
            " with a GPU: --device cuda:0.",
            "bold yellow",
        )


def _times_table(result: BenchResult, latency: Latency, is_full: bool) -> Table:
    spread = _SPREAD if is_full else ()
    heads = ("timed", "median#", *spread, "speedup#", "95 % interval#", "pairs#", "verdict")
    table = grid(*heads, whole=("timed", "median"))
    table.add_row("candidate", *_latency_cells(latency, is_full))
    for one in result.comparisons:
        theirs = one.baseline_latency
        cells = (
            [NOTHING, *[""] * len(spread)] if theirs is None else _latency_cells(theirs, is_full)
        )
        table.add_row(
            one.baseline.label,
            *cells,
            ratio_cell(one.speedup),
            interval_cell(one.interval),
            str(one.pairs or NOTHING),
            words_cell(one.verdict),
        )
    if result.null_kernel_us is not None:
        table.add_row("empty kernels", f"{result.null_kernel_us:.3f} us measured")
    return table


def _latency_cells(latency: Latency, is_full: bool) -> list[str]:
    cells = [f"{latency.median_us:.3f} us {latency.provenance}"]
    if not is_full:
        return cells
    if latency.spread is None:
        return [*cells, *[NOTHING] * len(_SPREAD)]
    return [*cells, *(f"{part:.3f}" for part in latency.spread), str(latency.replays)]


def _of_copy(latency: Latency, copy: PlainCopy) -> str:
    return f"{latency.median_us / copy.latency.median_us:.2f}"


def _fact_lines(result: BenchResult) -> Iterator[str]:
    """Yield the lines that decide whether the times can be believed."""
    latency, null_us = result.latency, result.null_kernel_us
    if latency is not None and null_us is not None:
        above = latency.median_us - null_us
        yield f"Candidate above empty kernels of its launch shape: {above:.3f} us (measured)"
    if result.achieved_gb_s is not None:
        copy = result.copy_gb_s
        share = 0.0 if not copy else result.achieved_gb_s / copy * 100
        ceiling = f", {share:.0f} % of the copy bandwidth {copy:,.0f} GB/s (measured)"
        achieved = f"{result.achieved_gb_s:,.0f} GB/s (bytes computed, time measured)"
        # What the kernel really moves, re-reads included, only counters know (kopt profile).
        yield f"Bytes that the problem needs: {achieved}{ceiling if copy else ''}"
    if (plain := result.plain_copy) is not None:
        ratio = "" if latency is None else f"; the candidate takes {_of_copy(latency, plain)} of it"
        yield f"A plain copy of as many bytes: {plain.latency.median_us:.3f} us (measured){ratio}"
    if result.memory_floor_us is not None:
        yield f"Floor of the memory: {result.memory_floor_us:.3f} us (computed from the data sheet)"
    rotation = result.rotation
    if result.warm_us is not None:
        others = "; all other times are cold" if rotation is not None and rotation.is_cold else ""
        yield f"With a warm L2: {result.warm_us:.3f} us (measured){others}"
    if rotation is not None:
        yield (
            f"Buffers: {rotation.sets} sets of {rotation.set_bytes:,} bytes in turn,"
            f" {rotation.over_l2:.1f} times the L2: {'cold' if rotation.is_cold else 'warm'}"
        )
    outputs = result.timed_outputs
    if outputs is not None:
        close = outputs.within_gates
        differ = f", {close} differ in bits and pass the gates" if close else ""
        equal = f"{outputs.identical} of {outputs.calls} equal the checked ones bit by bit"
        yield f"Outputs of the timed calls: {equal}{differ}"
    if result.state is not None:
        yield _state_line(result.state)
    check = result.check
    sandbox = f", sandbox {check.sandbox}" if check.sandbox else ""
    behind = "; a full one stands behind the verdict" if result.checked != check.level else ""
    yield f"Check: {check.status}, level {check.level} on {check.device}{sandbox}{behind}"


def _state_line(state: DeviceState) -> str:
    clocks = {"SM": state.sm_mhz, "memory": state.memory_mhz}
    parts = [
        f"{name} {found[0]} MHz" if found[0] == found[1] else f"{name} {found[0]} to {found[1]} MHz"
        for name, found in clocks.items()
        if found is not None
    ]
    if state.temperature_c is not None:
        parts.append(f"up to {state.temperature_c[1]} C")
    parts.append(f"throttle reasons: {', '.join(state.throttle) or 'none'}")
    return f"Clocks: {', '.join(parts)} (measured)"


def _comparison_lines(result: BenchResult) -> Iterator[str]:
    """Yield what sets a comparison apart, and the baselines that were not timed."""
    for one in result.comparisons:
        name = one.baseline.label
        for difference in one.like_for_like.differences:
            yield f"Not like for like with {name}: {difference}"
        if one.dropped_pairs:
            yield (
                f"{one.dropped_pairs} pairs against {name} are left out: throttled, or the clocks"
                " changed"
            )
    yield from (f"Not timed: {rejected_words(path)}" for path in result.rejected)


def _set_up_lines(result: BenchResult) -> Iterator[str]:
    """Yield the kernels of the baselines, noise floors, the driver and the time it took."""
    for one in result.comparisons:
        yield from _baseline_lines(one)
    if result.gpu is not None:
        gpu = result.gpu
        yield (
            f"Device: {gpu.uuid}, driver {gpu.driver_version}, CUDA {gpu.cuda_version},"
            f" {gpu.sm_count} SMs, {gpu.l2_bytes / 2**20:.0f} MiB L2"
        )
    yield f"Took {result.elapsed_s:.1f} s, of which the check {result.check.elapsed_s:.1f} s"


def _baseline_lines(comparison: Comparison) -> Iterator[str]:
    baseline, floor = comparison.baseline, comparison.noise_floor
    library = f" of {baseline.library}" if baseline.library else ""
    kernels = f": {', '.join(baseline.kernels)}" if baseline.kernels else ""
    yield f"Baseline {baseline.label}{library}{kernels}"
    if floor is not None:
        cached = "cached" if floor.cached else "now"
        yield (
            f"Noise floor of {baseline.label}: A/A median {percent(abs(floor.median))}, half-width"
            f" {percent(floor.half_width)}, {floor.pairs} pairs, {cached} ({floor.measured_at})"
        )
