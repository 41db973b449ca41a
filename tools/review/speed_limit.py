"""The most that physics leaves to a claim: the baseline's measured time over the least time.

A claim beyond it is refuted without a measurement of the kernel. Arithmetic sets no limit here:
tensor cores do more of it than the lanes of the data sheet.
"""

from collections.abc import Iterator

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BaselinePath, BenchResult, Comparison, Latency
from kopt.kernels.case import Case
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.receipt import Receipt, RepeatedMeasurement
from kopt.kernels.review_result import SpeedLimit
from kopt.kernels.roofline import workload_bytes
from kopt.kernels.shipped_kernels import kernels_in, visible_kernels
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.verdict import ABOVE_PEAK, ENOUGH_ROTATION, least_memory_us


def timed_limit(
    case: Case, result: BenchResult, comparison: Comparison, gpu: GpuSpec
) -> SpeedLimit | None:
    """Return the limit by the baseline's time in this measurement; None where it is not cold."""
    latency, rotation = comparison.baseline_latency, result.rotation
    if latency is None or rotation is None or rotation.over_l2 < ENOUGH_ROTATION:
        return None
    empty_us = result.null_kernel_us or 0.0
    return _limit(case, gpu, empty_us, (comparison.baseline.label, latency, "timed here"))


def receipt_limit(
    case: Case, arch: str, against: str | None, settings: Settings
) -> SpeedLimit | None:
    """Return the limit by the slowest such baseline in receipts of winners for `arch`.

    The slowest, because it leaves most to the claim. None where no receipt has one.

    Args:
        case: The kernel that the claim is of.
        arch: Compiler target of the claim's GPU.
        against: Name of the claim's baseline; None: each receipt's main one.
        settings: Where winners are.
    """
    limits = (
        limit
        for name, receipt in _receipts(case, arch, settings)
        for limit in _limits_of(case, name, receipt, against)
    )
    return max(limits, key=lambda limit: limit.speedup, default=None)


def _limits_of(
    case: Case, name: str, receipt: Receipt, against: str | None
) -> Iterator[SpeedLimit]:
    gpu = _data_sheet(receipt.device)
    if gpu is None:
        return
    for entry in receipt.workloads:
        if entry.workload != case.workload.name:
            continue
        for measurement in entry.measurements:
            if measurement.rotation.over_l2 < ENOUGH_ROTATION:
                continue
            for baseline, latency in _baseline_times(entry.baseline, measurement, against):
                yield _limit(case, gpu, gpu.null_kernel_us, (baseline.label, latency, name))


def _baseline_times(
    main: BaselinePath, measurement: RepeatedMeasurement, against: str | None
) -> Iterator[tuple[BaselinePath, Latency]]:
    if against in (None, main.name):
        yield main, measurement.baseline_latency
    for other in measurement.others:
        if other.baseline.name == against and other.baseline_latency is not None:
            yield other.baseline, other.baseline_latency


def _receipts(case: Case, arch: str, settings: Settings) -> Iterator[tuple[str, Receipt]]:
    """Yield the winners' receipts for this workload that can be read, shipped ones first."""
    own = settings.winners / case.problem.name
    found = (
        *visible_kernels(case.problem, case.workload, settings),
        *kernels_in(own, case.workload),
    )
    for kernel in found:
        if kernel.standing != "winner" or kernel.arch != arch:
            continue
        try:
            receipt = read_receipt(kernel.evidence)
        except ToolError:  # `kopt verify` says what is wrong with it
            continue
        if receipt.problem == case.problem.name:
            yield kernel.evidence.name, receipt


def _data_sheet(facts: DeviceFacts) -> GpuSpec | None:
    for sheet in load_gpus().values():
        if sheet.describes(facts.name) and sheet.compute_capability == facts.compute_capability:
            return sheet
    return None


def _limit(
    case: Case, gpu: GpuSpec, empty_us: float, baseline: tuple[str, Latency, str]
) -> SpeedLimit:
    label, latency, evidence = baseline
    memory_us = least_memory_us(workload_bytes(case.problem, case.workload), gpu)
    # An empty kernel's time varies by as much as a data sheet's peak is rounded.
    launch_us = empty_us / ABOVE_PEAK
    least_us = max(memory_us, launch_us)
    return SpeedLimit(
        gpu=gpu.name,
        baseline=label,
        baseline_us=latency.median_us,
        least_us=least_us,
        bound="memory" if memory_us >= launch_us else "launch",
        speedup=latency.median_us / least_us,
        evidence=evidence,
    )
