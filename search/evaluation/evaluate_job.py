"""One job on this machine: the stages in order, and what the search keeps of their results."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Record
from kopt.kernels.roofline import roofline, workload_bytes
from kopt.kernels.status import Provenance, Status
from kopt.search.records.evaluation import (
    FAMILY_CONTRADICTED,
    FLOOR,
    LATENCY,
    NOISE_FLOOR,
    PROOF_LEVELS,
    REGISTERS,
    Evaluation,
    EvaluationJob,
    KnownMeasurement,
    MetricValue,
)
from kopt.search.selection.family_evidence import FamilyEvidence, MachineCode, judge_family
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.errand import one_errand
from kopt.tools.devices.gpu_time import metered_gpu_time
from kopt.tools.estimate.stage import estimate_build, find_build
from kopt.tools.facts.check_facts import check_summary

from .evaluation_site import EvaluationSite
from .measure_job import CheckedCase, measure_job


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
        progress=site.say if is_proof else ignore,
    )
    with one_errand(), metered_gpu_time() as on_gpu:
        checked = check_candidate(request, site.device, site.settings)
        found = Evaluation(
            status=checked.status,
            summary=check_summary(checked),
            device=checked.device,
            sandbox=checked.sandbox,
            artifacts=_kept(site, {"check": _json(checked)}),
        )
        if checked.status is Status.PASSED and job.level != "again":
            found = _judge_speed(job, CheckedCase(request, checked), site, found)
    times = {"elapsed_s": time.monotonic() - began, "gpu_seconds": on_gpu.seconds}
    return Evaluation.model_validate(dict(found) | times)


def _judge_speed(
    job: EvaluationJob, passed: CheckedCase, site: EvaluationSite, found: Evaluation
) -> Evaluation:
    """Return the evaluation of a candidate that passed its check, its time included."""
    request, checked = passed.request, passed.result
    gpu = site.device.gpu or gpu_for_arch(job.arch)
    plan = _final_plan(request, checked, gpu)
    code = MachineCode(find_build(checked.compiled, plan, gpu), plan, checked.compiled.occupancy)
    model = workload_bytes(request.case.problem, request.case.workload)
    evidence = judge_family(job.family, code)
    floor_us = roofline(model, gpu).floor_us
    values = computed_values(code, evidence, (request.case.workload.name, floor_us))
    documents = {"cubin": Path(code.build.cubin_path).read_bytes(), "family": _json(evidence)}
    known = _with(found, values, _kept(site, documents))
    known = known.model_copy(update={"equivalence": _equivalence(checked, plan)})
    if site.timer is not None:
        return _timed(job, passed, site, known)
    known_bytes = (model, checked.counters)
    estimate = estimate_build(code.build, plan, gpu, known_bytes, site.settings)
    time_us = estimate.latency_us
    latency = MetricValue.of(estimate.workload, (LATENCY, "us"), estimate.provenance, time_us)
    told_apart = (NOISE_FLOOR, "1")
    floor = MetricValue.of(estimate.workload, told_apart, estimate.provenance, estimate.resolution)
    return _with(known, (latency, floor), _kept(site, {"estimate": _json(estimate)}))


def _timed(
    job: EvaluationJob, passed: CheckedCase, site: EvaluationSite, found: Evaluation
) -> Evaluation:
    """Return the evaluation with times: measured now, or earlier for another of its program."""
    measured_now: list[Evaluation] = []
    equivalence = found.equivalence or ""

    def measure() -> KnownMeasurement | None:
        timing = measure_job(job, passed, site)
        artifacts = _kept(site, timing.documents)
        told = {"status": timing.status, "summary": f"{found.summary}; {timing.summary}"}
        measured_now.append(_with(found.model_copy(update=told), timing.values, artifacts))
        if timing.status is not Status.PASSED:
            return None
        return KnownMeasurement(
            equivalence=equivalence,
            candidate=job.candidate,
            values=timing.values,
            artifacts=artifacts,
        )

    known = site.measured.measure(job, equivalence, measure) if job.level == "quick" else measure()
    if measured_now or known is None:
        return measured_now[0]
    same = f"the same cubins and launches as #{known.candidate}, whose times these are"
    told = {"summary": f"{found.summary}; {same}", "measured_as": known.candidate}
    return _with(found.model_copy(update=told), known.values, known.artifacts)


def _with(
    found: Evaluation, values: tuple[MetricValue, ...], artifacts: Mapping[str, str]
) -> Evaluation:
    """Return `found` with further values and artifacts."""
    more = {"values": found.values + values, "artifacts": {**found.artifacts, **artifacts}}
    return found.model_copy(update=more)


def _kept(site: EvaluationSite, documents: Mapping[str, bytes]) -> dict[str, str]:
    """Keep documents and return their digests, by kind."""
    return {kind: site.artifacts.put(data) for kind, data in documents.items()}


def _json(record: Record) -> bytes:
    return record.model_dump_json(by_alias=True).encode()


def _final_plan(request: CheckRequest, checked: CheckResult, gpu: GpuSpec) -> LaunchPlan:
    """Return the plan of the named workload as it is launched on `gpu`."""
    plans = make_plans(request, gpu).final(checked.compiled, gpu, simulated=False)
    return plans[request.case.workload.name]


def _equivalence(checked: CheckResult, plan: LaunchPlan) -> str:
    """Return the digest of the cubins and the launches; the defines are in the cubins already."""
    launches = plan.model_copy(update={"defines": {}}).model_dump_json()
    return hashlib.sha256(f"{checked.compiled.binary_id}\n{launches}".encode()).hexdigest()


def computed_values(
    code: MachineCode, evidence: FamilyEvidence, floor: tuple[str, float]
) -> tuple[MetricValue, ...]:
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
        MetricValue.of(workload, (metric, unit), Provenance.COMPUTED, number)
        for metric, unit, number in numbers
    )
