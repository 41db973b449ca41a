"""One job on this machine: the stages in order, and what the search keeps of their results."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Record
from kopt.kernels.roofline import roofline, workload_bytes
from kopt.kernels.status import Provenance, Status
from kopt.kernels.time_estimate import TimeEstimate
from kopt.search.records.evaluation import (
    FAMILY_CONTRADICTED,
    FLOOR,
    LATENCY,
    PROOF_LEVELS,
    REGISTERS,
    Evaluation,
    EvaluationJob,
    KnownMeasurement,
    Value,
)
from kopt.search.selection.family_evidence import FamilyEvidence, MachineCode, judge_family
from kopt.search.storage.artifacts import ArtifactStore
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Device
from kopt.tools.devices.gpu_time import metered_gpu_time
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.estimate.stage import estimate_time, find_build
from kopt.tools.facts.check_facts import check_summary

from .measure_job import measure_job
from .reuse import MeasuredOnce

"""Of what a compiler says: the whole of it is in the check's document."""


@dataclass(frozen=True)
class EvaluationSite:
    """What this machine evaluates with."""

    device: Device
    timer: TimingDevice | None
    """The same device where it is a GPU; None on sim, which measures no time."""
    settings: Settings
    artifacts: ArtifactStore
    measured: MeasuredOnce = field(default_factory=MeasuredOnce)
    """What was measured here since the process began."""
    say: Callable[[str], None] = ignore
    """Told, from any thread, what goes on besides the events of a run: what its first timing waits
    for, that the leader is profiled or promoted."""


def evaluate_job(job: EvaluationJob, site: EvaluationSite) -> Evaluation:
    """Compile and check the candidate of `job`, then time it on a GPU or estimate its time on sim.

    Raises:
        ToolError: No such kernel or architecture.
        SetupError: This machine lacks a compiler or a writable folder, or the run's baseline.
        InfraError: The machine failed under the candidate; the job may be tried again.
    """
    began = time.monotonic()
    problem, workload = find_kernel(job.kernel, site.settings.problems)
    is_proof = job.level in PROOF_LEVELS
    request = CheckRequest(
        case=Case(problem, workload, Candidate(job.source, job.source_name), job.tune),
        level="full" if is_proof else "quick",
        # Nearly always the same instructions, sooner; what is called a winner is nvcc's.
        compiler="nvcc" if is_proof else "nvrtc",
        arch=job.arch,
        hidden_draw=1 if job.level == "again" else 0,
    )
    with metered_gpu_time() as on_gpu:
        checked = check_candidate(request, site.device, site.settings)
        findings = _Findings(checked.status, check_summary(checked))
        if checked.status is Status.PASSED and job.level != "again":
            findings = _judge_speed(job, (request, checked), site, findings)
    return Evaluation(
        status=findings.status,
        summary=findings.summary,
        device=checked.device,
        sandbox=checked.sandbox,
        equivalence=findings.equivalence,
        values=findings.values,
        artifacts={**findings.artifacts, **_kept(site, {"check": _json(checked)})},
        elapsed_s=time.monotonic() - began,
        gpu_seconds=on_gpu.seconds,
        measured_as=findings.measured_as,
    )


@dataclass(frozen=True)
class _Findings:
    """What the stages have found so far."""

    status: Status
    summary: str
    values: tuple[Value, ...] = ()
    artifacts: dict[str, str] = field(default_factory=dict[str, str])
    """Digests by kind."""
    equivalence: str | None = None
    measured_as: int | None = None


def _judge_speed(
    job: EvaluationJob,
    passed: tuple[CheckRequest, CheckResult],
    site: EvaluationSite,
    found: _Findings,
) -> _Findings:
    """Return the findings on a candidate that passed its check, its time included."""
    request, checked = passed
    gpu = site.device.gpu or gpu_for_arch(job.arch)
    plan = _final_plan(request, checked, gpu)
    code = MachineCode(find_build(checked.compiled, plan, gpu), plan, checked.compiled.occupancy)
    model = workload_bytes(request.case.problem, request.case.workload)
    evidence = judge_family(job.family, code)
    floor_us = roofline(model, gpu).floor_us
    values = computed_values(code, evidence, (request.case.workload.name, floor_us))
    documents = {"cubin": Path(code.build.cubin_path).read_bytes(), "family": _json(evidence)}
    artifacts = _kept(site, documents)
    equivalence = _equivalence(checked, plan)
    if site.timer is None:
        estimate = estimate_time(checked.compiled, checked.counters, plan, gpu, model)
        timed = _Findings(
            status=found.status,
            summary=found.summary,
            values=(_latency(estimate),),
            artifacts=_kept(site, {"estimate": _json(estimate)}),
        )
    else:
        timed = _time(job, passed, (site, site.timer), equivalence)
        timed = replace(timed, summary=f"{found.summary}; {timed.summary}")
    return replace(
        timed,
        values=(*values, *timed.values),
        artifacts=artifacts | timed.artifacts,
        equivalence=equivalence,
    )


def _time(
    job: EvaluationJob,
    passed: tuple[CheckRequest, CheckResult],
    on: tuple[EvaluationSite, TimingDevice],
    equivalence: str,
) -> _Findings:
    """Return the times of a candidate: measured now, or earlier for another of the same program."""
    site, timer = on
    measured_now: list[_Findings] = []

    def measure() -> KnownMeasurement | None:
        found = measure_job(job, passed, timer, site.settings, site.say)
        artifacts = _kept(site, found.documents)
        measured_now.append(_Findings(found.status, found.summary, found.values, artifacts))
        if found.status is not Status.PASSED:
            return None
        return KnownMeasurement(
            equivalence=equivalence,
            candidate=job.candidate,
            values=found.values,
            artifacts=artifacts,
        )

    known = site.measured.measure(job, equivalence, measure) if job.level == "quick" else measure()
    if measured_now or known is None:
        return measured_now[0]
    return _Findings(
        status=Status.PASSED,
        summary=f"the same cubins and launches as #{known.candidate}, whose times these are",
        values=known.values,
        artifacts=known.artifacts,
        measured_as=known.candidate,
    )


def _kept(site: EvaluationSite, documents: Mapping[str, bytes]) -> dict[str, str]:
    """Keep documents and return their digests, by kind."""
    return {kind: site.artifacts.put(data) for kind, data in documents.items()}


def _json(record: Record) -> bytes:
    return record.model_dump_json(by_alias=True).encode()


def _final_plan(request: CheckRequest, checked: CheckResult, gpu: GpuSpec) -> LaunchPlan:
    """Return the plan of the named workload as it is launched on `gpu`."""
    plans = make_plans(request, gpu).final(checked.compiled, gpu, simulated=False)
    return plans[request.case.workload.name]


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


def computed_values(
    code: MachineCode, evidence: FamilyEvidence, floor: tuple[str, float]
) -> tuple[Value, ...]:
    """Return registers, spills, shared memory, occupancy, the floor, and a contradicted claim.

    Args:
        code: What it was compiled to.
        evidence: Whether its machine code shows the claimed family.
        floor: The workload, and the least time that it can take on the GPU, microseconds.
    """
    workload, floor_us = floor
    kernels = code.build.kernels
    spills = sum(kernel.spill_store_bytes + kernel.spill_load_bytes for kernel in kernels)
    numbers = [
        (REGISTERS, "1", max(kernel.registers_per_thread for kernel in kernels)),
        ("spills", "bytes", spills),
        ("static_smem", "bytes", max(kernel.static_smem_bytes for kernel in kernels)),
        (FLOOR, "us", floor_us),
    ]
    if code.occupancy:
        fraction = min(entry.theoretical_occupancy for entry in code.occupancy)
        numbers.append(("theoretical_occupancy", "1", fraction))
    if evidence.verdict == "contradicted":
        numbers.append((FAMILY_CONTRADICTED, "1", 1.0))
    return tuple(
        Value(
            workload=workload,
            metric=metric,
            unit=unit,
            provenance=Provenance.COMPUTED,
            value=number,
        )
        for metric, unit, number in numbers
    )
