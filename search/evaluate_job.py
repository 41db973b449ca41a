"""One job on this machine: the stages in order, and what the search keeps of their results."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.byte_model import workload_bytes
from kopt.kernels.candidate import Candidate
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import Build
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Workload
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.bench.request import TimingDevice
from kopt.tools.check.check_plans import final_plans, make_plans
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.device import Device
from kopt.tools.estimate import estimate_time, find_build

from .artifacts import ArtifactStore
from .evaluator import LATENCY, REGISTERS, Evaluation, EvaluationJob, Value
from .measure_job import measure_job


@dataclass(frozen=True)
class EvaluationSite:
    """What this machine evaluates with."""

    device: Device
    timer: TimingDevice | None
    """The same device where it is a GPU; None on sim, which measures no time."""
    settings: Settings
    artifacts: ArtifactStore


def evaluate_job(job: EvaluationJob, place: EvaluationSite) -> Evaluation:
    """Compile and check the candidate of `job`, then time it on a GPU or estimate its time on sim.

    Raises:
        ToolError: No such kernel or architecture.
        SetupError: This machine lacks a compiler or a writable folder, or the run's baseline.
        InfraError: The machine failed under the candidate; the job may be tried again.
    """
    began = time.monotonic()
    problem, workload = find_kernel(job.kernel, place.settings.problems)
    candidate = Candidate(job.source, job.source_name)
    request = CheckRequest(
        problem=problem,
        workload=workload,
        candidate=candidate,
        level="full" if job.level == "full" else "quick",
        tune=job.tune,
        # The same instructions in a fraction of the time; what is called a winner is nvcc's.
        compiler="nvcc" if job.level == "full" else "nvrtc",
        arch=job.arch,
    )
    checked = check_candidate(request, place.device, place.settings)
    findings = _Findings(checked.status, _summary(checked), documents={"check": _json(checked)})
    if checked.status is Status.PASSED:
        findings = _judge_speed(job, (request, checked), place, findings)
    return Evaluation(
        status=findings.status,
        summary=findings.summary,
        device=checked.device,
        sandbox=checked.sandbox,
        equivalence=findings.equivalence,
        values=findings.values,
        artifacts={kind: place.artifacts.put(data) for kind, data in findings.documents.items()},
        elapsed_s=time.monotonic() - began,
    )


@dataclass(frozen=True)
class _Findings:
    """What the stages have found so far."""

    status: Status
    summary: str
    documents: dict[str, bytes]
    """By artifact kind."""
    values: tuple[Value, ...] = ()
    equivalence: str | None = None


def _judge_speed(
    job: EvaluationJob,
    passed: tuple[CheckRequest, CheckResult],
    place: EvaluationSite,
    found: _Findings,
) -> _Findings:
    """Return the findings on a candidate that passed its check, its time included."""
    request, checked = passed
    gpu = place.device.gpu or gpu_for_arch(job.arch)
    plan = _final_plan(request, checked, gpu)
    build = find_build(checked.compiled, plan, gpu)
    values = tuple(_build_values(build, checked, request.workload))
    documents = {**found.documents, "cubin": Path(build.cubin_path).read_bytes()}
    equivalence = _equivalence(checked, plan)
    if place.timer is not None:
        timed = measure_job(job, passed, place.timer, place.settings)
        return _Findings(
            status=timed.status,
            summary=f"{found.summary}; {timed.summary}",
            documents=documents | timed.documents,
            values=(*values, *timed.values),
            equivalence=equivalence,
        )
    model = workload_bytes(request.problem, request.workload)
    estimate = estimate_time(checked.compiled, checked.counters, plan, gpu, model)
    return _Findings(
        status=found.status,
        summary=found.summary,
        documents={**documents, "estimate": _json(estimate)},
        values=(*values, _latency(estimate)),
        equivalence=equivalence,
    )


def _json(record: Record) -> bytes:
    return record.model_dump_json(by_alias=True).encode()


def _final_plan(request: CheckRequest, checked: CheckResult, gpu: GpuSpec) -> LaunchPlan:
    """Return the plan of the named workload as it is launched on `gpu`."""
    plans = final_plans(make_plans(request, gpu), checked.compiled, gpu, simulated=False)
    return plans[request.workload.name]


def _build_values(build: Build, checked: CheckResult, workload: Workload) -> Iterator[Value]:
    def computed(metric: str, unit: str, value: float) -> Value:
        return Value(
            workload=workload.name,
            metric=metric,
            unit=unit,
            provenance=Provenance.COMPUTED,
            value=value,
        )

    kernels = build.kernels
    yield computed(REGISTERS, "1", max(kernel.registers_per_thread for kernel in kernels))
    spills = sum(kernel.spill_store_bytes + kernel.spill_load_bytes for kernel in kernels)
    yield computed("spills", "bytes", spills)
    static = max(kernel.static_smem_bytes for kernel in kernels)
    yield computed("static_smem", "bytes", static)
    occupancy = [entry.theoretical_occupancy for entry in checked.compiled.occupancy]
    if occupancy:
        yield computed("theoretical_occupancy", "1", min(occupancy))


def _latency(estimate: TimeEstimate) -> Value:
    return Value(
        workload=estimate.workload,
        metric=LATENCY,
        unit="us",
        provenance=estimate.provenance,
        value=estimate.latency_us,
    )


def _equivalence(checked: CheckResult, plan: LaunchPlan) -> str:
    """Return the digest of the cubins and the launches; the defines are in the cubins already."""
    launches = plan.model_copy(update={"defines": {}}).model_dump_json()
    return hashlib.sha256(f"{checked.compiled.binary_id}\n{launches}".encode()).hexdigest()


def _summary(checked: CheckResult) -> str:
    if checked.status is Status.PASSED:
        executions = sum(workload.executions for workload in checked.workloads)
        workloads = len(checked.workloads)
        shapes = "1 workload" if workloads == 1 else f"{workloads} workloads"
        return f"{executions} executions of {shapes} agree with the oracle"
    if checked.mismatch is not None:
        found = checked.mismatch
        return (
            f"{found.workload}: {found.tensor}{list(found.index)} is {found.got},"
            f" expected {found.expected} ({found.pattern})"
        )
    for diagnostic in checked.diagnostics:
        if diagnostic.severity == "error":
            place = "" if diagnostic.line is None else f"line {diagnostic.line}: "
            return f"{place}{diagnostic.message}"
    return checked.status.value
