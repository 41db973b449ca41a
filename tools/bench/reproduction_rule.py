"""When a receipt reproduces, and what is noted beside it: rules over records."""

from collections.abc import Sequence
from math import exp, log

from kopt import __version__
from kopt.kernels.bench_result import BenchResult, Comparison
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
from kopt.kernels.receipt import Receipt, WorkloadEvidence
from kopt.kernels.status import Status, Verdict
from kopt.kernels.verify_result import CubinComparison, VerifyResult, WorkloadReproduction

from .agreement import MAX_SPREAD, SPREAD_OF_GAIN
from .bound_files import BASELINE_FILES, changed_files
from .reference_side import REFERENCE

MAX_BETWEEN_GPUS = 0.03
"""Log ratio that a speedup may be beyond a receipt's range on another GPU of its model. Source: the
same kernels on several H100s, at most 2.8 % apart (docs/receipts.md)."""


def compare_cubins(receipt: Receipt, compiled: CompileResult) -> CubinComparison:
    """Return whether `compiled` has the receipt's binaries."""
    now = {name: build.cubin_sha256 for build in compiled.builds for name in build.workloads}
    names = [entry.workload for entry in receipt.workloads]
    differing = tuple(name for name in names if now.get(name) != receipt.cubin_of(name))
    toolchain = compiled.builds[0].toolchain
    return CubinComparison(
        same=not differing,
        differing=differing,
        receipt_toolchain=f"{receipt.toolchain.compiler} {receipt.toolchain.version}",
        toolchain=f"{toolchain.compiler} {toolchain.version}",
    )


def binary_reasons(found: CubinComparison | None) -> list[str]:
    """Return why the binary speaks against the receipt: the same compiler made another one."""
    if found is None or found.same or not found.same_toolchain:
        return []
    names = ", ".join(found.differing)
    return [f"{found.toolchain} makes another binary of the source than then ({names})"]


def accepted_range(
    entry: WorkloadEvidence, threshold: float, *, on_another_gpu: bool
) -> tuple[float, float]:
    """Return the receipt's range of speedups, widened by the wider noise threshold.

    No more than MAX_SPREAD is believed of the receipt's own range and noise, each: whoever writes a
    receipt writes these, too.

    Args:
        entry: One workload of a receipt.
        threshold: Noise threshold of the new measurement, a log ratio.
        on_another_gpu: Whether it was made on another GPU of the receipt's model: a quarter of the
            gain is allowed then, at most MAX_BETWEEN_GPUS.
    """
    wider = max(min(entry.noise_threshold, MAX_SPREAD), threshold)
    if on_another_gpu:
        wider = max(wider, min(MAX_BETWEEN_GPUS, SPREAD_OF_GAIN * log(entry.speedup)))
    low = max(entry.range[0], entry.speedup * exp(-MAX_SPREAD))
    high = min(entry.range[1], entry.speedup * exp(MAX_SPREAD))
    return low * exp(-wider), high * exp(wider)


def as_receipt_says(entry: WorkloadEvidence, status: Status) -> WorkloadReproduction:
    """Return what the receipt says of a workload, not measured again."""
    return WorkloadReproduction(
        workload=entry.workload,
        receipt_baseline=entry.baseline.label,
        receipt_library=entry.baseline.library,
        receipt_speedup=entry.speedup,
        receipt_range=entry.range,
        accepted_range=accepted_range(entry, 0.0, on_another_gpu=False),
        status=status,
        holds=False,
    )


def compare_measurement(
    before: WorkloadReproduction,
    entry: WorkloadEvidence,
    result: BenchResult,
    *,
    on_another_gpu: bool,
) -> WorkloadReproduction:
    """Return `before` with the new measurement, and whether it reproduces the receipt's."""
    main = _same_kind(entry, result)
    if result.status is not Status.PASSED or main is None:
        why = f"{result.status} when it was timed"
        return before.model_copy(update={"status": result.status, "reason": why})
    threshold = 0.0 if main.noise_floor is None else main.noise_floor.threshold
    there = accepted_range(entry, threshold, on_another_gpu=False)
    accepted = accepted_range(entry, threshold, on_another_gpu=on_another_gpu)
    reason = _reason(entry, main, result, accepted)
    return before.model_copy(
        update={
            "accepted_range": accepted,
            "status": result.status,
            "baseline": main.baseline.label,
            "library": main.baseline.library,
            "verdict": main.verdict,
            "speedup": main.speedup,
            "interval": main.interval,
            "holds": reason is None,
            "only_on_another_gpu": reason is None and not _meets(main, there),
            "reason": reason,
        }
    )


def _same_kind(entry: WorkloadEvidence, result: BenchResult) -> Comparison | None:
    """Return the comparison with the fastest library path, or with the reference kernel."""
    is_reference = entry.baseline.name == REFERENCE
    return next(
        (one for one in result.comparisons if (one.baseline.name == REFERENCE) == is_reference),
        None,
    )


def _reason(
    entry: WorkloadEvidence,
    main: Comparison,
    result: BenchResult,
    accepted: tuple[float, float],
) -> str | None:
    """Return why a measurement does not reproduce the receipt's; None if it does."""
    reason: str | None = None
    slower = next((one for one in result.comparisons if one.verdict is Verdict.SLOWER), None)
    if main.verdict is not Verdict.FASTER:
        reason = f"{main.verdict.replace('_', ' ')} against {main.baseline.label}"
    elif not _meets(main, accepted):
        reason = f"faster than {main.baseline.label}, but by another ratio than in the receipt"
    elif slower is not None:
        return f"faster than {main.baseline.label}, but slower than {slower.baseline.label}"
    if reason is not None and main.baseline.label != entry.baseline.label:
        reason += f" (the receipt's baseline is {entry.baseline.label})"
    return reason


def _meets(main: Comparison, accepted: tuple[float, float]) -> bool:
    low, high = accepted
    return main.interval is not None and main.interval[0] <= high and main.interval[1] >= low


def build_notes(
    receipt: Receipt, problem: Problem, found: CubinComparison | None
) -> tuple[str, ...]:
    """Return what differs in compiler, kopt and the problem's files."""
    notes: list[str] = []
    if found is not None and not found.same_toolchain:
        binary = "the same binary" if found.same else "another binary"
        notes.append(f"{found.toolchain} makes {binary}; receipt: {found.receipt_toolchain}")
    if receipt.kopt_version != __version__:
        notes.append(f"kopt {__version__}; receipt: {receipt.kopt_version}")
    notes += [
        f"{name} of the problem has changed since"
        for name, _ in changed_files(problem, receipt.problem_files)
        if name in BASELINE_FILES
    ]
    return tuple(notes)


def device_notes(now: DeviceFacts, then: DeviceFacts) -> tuple[str, ...]:
    """Return what differs in driver and GPU, of the same model."""
    notes: list[str] = []
    if now.driver_version != then.driver_version:
        notes.append(f"driver {now.driver_version}; receipt: {then.driver_version}")
    if now.uuid != then.uuid and now.name == then.name:
        notes.append(f"another {now.name} than the receipt's")
    return tuple(notes)


def workload_notes(entries: Sequence[WorkloadReproduction]) -> tuple[str, ...]:
    """Return other versions of the library, and what holds by the allowance between GPUs alone."""
    libraries = [
        f"{entry.workload}: {entry.library}; receipt: {entry.receipt_library}"
        for entry in entries
        if entry.verdict is not None and entry.library != entry.receipt_library
    ]
    allowed = [
        f"{entry.workload}: {entry.speedup:.3f}x is in the accepted range only because another GPU"
        f" may differ by a quarter of the gain, at most {MAX_BETWEEN_GPUS:.0%}"
        for entry in entries
        if entry.only_on_another_gpu
    ]
    return (*libraries, *allowed)


def decided(result: VerifyResult, reasons: Sequence[str]) -> VerifyResult:
    """Return `result` with its outcome: reproduced unless a reason speaks against the receipt."""
    unmeasured = sum(
        entry.verdict is None and entry.status is Status.PASSED for entry in result.workloads
    )
    outcome = "not_reproduced" if reasons else "reproduced"
    if unmeasured and len(reasons) == unmeasured:  # nothing speaks against it, but not all is known
        outcome = "unavailable"
    return result.model_copy(update={"reproduction": outcome, "reasons": tuple(reasons)})
