"""The benchmark without a GPU: the candidate's estimate against the reference kernel's.

Nothing is timed. The ratio orders candidates and claims nothing about a device; its verdict is
always `estimated`, and it has no interval (docs/estimate.md).
"""

from collections.abc import Iterator
from time import perf_counter

from kopt.config.callbacks import prefixed
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.bench_result import (
    BaselinePath,
    BenchResult,
    Comparison,
    Latency,
    LikeForLike,
)
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.record import Diagnostic, because
from kopt.kernels.roofline import memory_floor_us, workload_bytes
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Device
from kopt.tools.estimate.stage import estimate_build, find_build

from .bench_outcome import begun
from .reference_side import REFERENCE
from .request import BenchRequest


def bench_estimated(
    request: BenchRequest, arch: str, device: Device, settings: Settings
) -> BenchResult:
    """Return a ratio of estimates for the GPU that `device` stands for, verdict `estimated`.

    Nothing is timed: pairs, seed and library baselines of the request are of no use, and `device`
    checks both kernels and counts their accesses.

    Raises:
        ToolError: No data sheet for `arch`, or the reference kernel is wrong.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    start = perf_counter()
    gpu = device.gpu or gpu_for_arch(arch)
    asked = request.quick_check(arch)
    check = request.checked or check_candidate(asked, device, settings)
    bytes_moved = workload_bytes(request.case.problem, request.case.workload)
    floor = {"memory_floor_us": memory_floor_us(bytes_moved, gpu)}
    result = begun(check, request.case.problem.precision).model_copy(update=floor)
    if check.status is Status.PASSED:
        own = estimate_checked(asked, check, gpu, settings)
        reference = _reference_estimate(request, arch, device, settings)
        result = result.model_copy(
            update={
                "verdict": Verdict.ESTIMATED,
                "latency": estimated_latency(own),
                "resolution": own.resolution,
                "comparisons": (_comparison(own, reference),),
                "diagnostics": (*result.diagnostics, *_assumptions(own)),
            }
        )
    return result.model_copy(update={"elapsed_s": perf_counter() - start})


def _assumptions(estimate: TimeEstimate) -> Iterator[Diagnostic]:
    for assumption in estimate.missing:
        yield Diagnostic(severity="note", message=f"not known to the estimate: {assumption}")


def _reference_estimate(
    request: BenchRequest, arch: str, device: Device, settings: Settings
) -> TimeEstimate:
    problem = request.case.problem
    path = problem.folder / "reference.cu"
    asked = CheckRequest(
        case=Case(problem, request.case.workload, read_candidate(path)),
        level="quick",
        arch=arch,
        progress=prefixed(request.progress, f"{REFERENCE} kernel"),
    )
    check = check_candidate(asked, device, settings)
    if check.status is not Status.PASSED:
        said = because(check.diagnostics)
        raise ToolError(f"{path} cannot be compared with: {check.status}{said}")
    return estimate_checked(asked, check, device.gpu or gpu_for_arch(arch), settings)


def estimate_checked(
    asked: CheckRequest, check: CheckResult, gpu: GpuSpec, settings: Settings
) -> TimeEstimate:
    """Return the estimated time of a candidate that `check`, the answer to `asked`, has passed."""
    case = asked.case
    plans = make_plans(asked, gpu).final(check.compiled, gpu, simulated=False)
    model = workload_bytes(case.problem, case.workload)
    plan = plans[case.workload.name]
    build = find_build(check.compiled, plan, gpu)
    return estimate_build(build, plan, gpu, (model, check.counters), settings)


def _comparison(own: TimeEstimate, reference: TimeEstimate) -> Comparison:
    return Comparison(
        baseline=BaselinePath(name=REFERENCE),
        verdict=Verdict.ESTIMATED,
        speedup=reference.latency_us / own.latency_us,
        interval=None,
        baseline_latency=estimated_latency(reference),
        like_for_like=LikeForLike(holds=True),
        provenance=Provenance.ESTIMATED,
    )


def estimated_latency(estimate: TimeEstimate) -> Latency:
    """Return an estimate as the time of a result."""
    return Latency(median_us=estimate.latency_us, replays=0, provenance=Provenance.ESTIMATED)
