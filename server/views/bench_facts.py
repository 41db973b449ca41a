"""What stands behind a benchmark's times, one line each: bytes, buffers, outputs, clocks."""

from collections.abc import Iterator

from kopt.kernels.bench_result import BenchResult, Comparison, DeviceState

from .bench_words import percent


def fact_lines(result: BenchResult) -> Iterator[str]:
    """Yield the lines that decide whether the times can be believed."""
    yield from _speed_lines(result)
    yield from _output_lines(result)
    if result.state is not None:
        yield _state_line(result.state)
    yield _check_line(result)
    for comparison in result.comparisons:
        yield from _difference_lines(comparison)
    for path in result.rejected:
        pdl = "on" if path.pdl else "off"
        status = path.status.replace("_", " ")
        yield f"Not timed: {path.name} (PDL {pdl}), {status}: {path.reason}"


def full_fact_lines(result: BenchResult) -> Iterator[str]:
    """Yield those lines and the set-up: kernels, noise floors, driver."""
    yield from fact_lines(result)
    for comparison in result.comparisons:
        yield from _baseline_lines(comparison)
    if result.gpu is not None:
        gpu = result.gpu
        yield (
            f"Device: {gpu.uuid}, driver {gpu.driver_version}, CUDA {gpu.cuda_version},"
            f" {gpu.sm_count} SMs, {gpu.l2_bytes / 2**20:.0f} MiB L2"
        )
    yield f"Took {result.elapsed_s:.1f} s, of which the check {result.check.elapsed_s:.1f} s"


def _speed_lines(result: BenchResult) -> Iterator[str]:
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
    if result.memory_floor_us is not None:
        yield f"Floor of the memory: {result.memory_floor_us:.3f} us (computed from the data sheet)"
    if result.warm_us is not None:
        is_cold = result.rotation is not None and result.rotation.is_cold
        others = "; all other times are cold" if is_cold else ""
        yield f"With a warm L2: {result.warm_us:.3f} us (measured){others}"
    rotation = result.rotation
    if rotation is not None:
        warmth = "cold" if rotation.is_cold else "WARM: the sets do not fill the L2 twice"
        yield (
            f"Buffers: {rotation.sets} sets of {rotation.set_bytes:,} bytes in turn,"
            f" {rotation.over_l2:.1f} times the L2: {warmth}"
        )


def _output_lines(result: BenchResult) -> Iterator[str]:
    outputs = result.timed_outputs
    if outputs is None:
        return
    others = outputs.within_gates
    differ = f", {others} differ in bits and pass the gates" if others else ""
    wrong = outputs.calls - outputs.identical - others
    bad = f", {wrong} ARE WRONG" if wrong else ""
    yield (
        f"Outputs of the timed calls: {outputs.identical} of {outputs.calls} equal the checked"
        f" ones bit by bit{differ}{bad}"
    )


def _state_line(state: DeviceState) -> str:
    parts = [
        f"{name} {low} MHz" if low == high else f"{name} {low} to {high} MHz"
        for name, (low, high) in (
            (name, clocks)
            for name, clocks in (("SM", state.sm_mhz), ("memory", state.memory_mhz))
            if clocks is not None
        )
    ]
    if state.temperature_c is not None:
        parts.append(f"up to {state.temperature_c[1]} C")
    throttle = ", ".join(state.throttle) or "none"
    parts.append(f"throttle reasons: {throttle}")
    if state.other_processes:
        parts.append(f"{state.other_processes} OTHER PROCESSES on the device")
    return f"Clocks: {', '.join(parts)} (measured)"


def _check_line(result: BenchResult) -> str:
    check = result.check
    sandbox = f", sandbox {check.sandbox}" if check.sandbox else ""
    return f"Check: {check.status}, level {check.level} on {check.device}{sandbox}"


def _difference_lines(comparison: Comparison) -> Iterator[str]:
    name = comparison.baseline.label
    for difference in comparison.like_for_like.differences:
        yield f"Not like for like with {name}: {difference}"
    if comparison.dropped_pairs:
        yield (
            f"{comparison.dropped_pairs} pairs against {name} are left out: throttled, or the"
            " clocks changed"
        )


def _baseline_lines(comparison: Comparison) -> Iterator[str]:
    baseline, floor = comparison.baseline, comparison.noise_floor
    name = baseline.label
    library = f" of {baseline.library}" if baseline.library else ""
    kernels = f": {', '.join(baseline.kernels)}" if baseline.kernels else ""
    yield f"Baseline {name}{library}{kernels}"
    if floor is not None:
        cached = "cached" if floor.cached else "now"
        yield (
            f"Noise floor of {name}: A/A median {percent(abs(floor.median))}, half-width"
            f" {percent(floor.half_width)}, {floor.pairs} pairs, {cached} ({floor.measured_at})"
        )
