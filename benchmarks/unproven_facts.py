"""Write the facts beside the unproven sm_100a kernels: what is known of them without a Blackwell.

    .venv/bin/python benchmarks/unproven_facts.py [--only PART] [--on-gpu on_gpu.json]
    .venv/bin/python benchmarks/unproven_facts.py --write docs/blackwell.md

Compiles each source and its problem's reference kernel for sm_100a, counts accesses on the
simulator, estimates, compiles for sm_90a, and runs the full check on the simulator. What a GPU of
another architecture said is kept if the source is still the same; --on-gpu adds it from the file
that `unproven_on_gpu.py` wrote. --write puts the tables of the facts as they are into a document.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_tables import insert_between
from unproven_tables import MARKS, tables

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import Build
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.roofline import memory_floor_us, workload_bytes
from kopt.kernels.shipped_kernels import ShippedKernel, shipped_kernels
from kopt.kernels.status import Status
from kopt.kernels.unproven_facts import (
    OtherGpuRun,
    SimCheck,
    StaticFacts,
    UnprovenFacts,
    facts_text,
    read_facts,
)
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice

ELSEWHERE = "sm_90a"


@dataclass(frozen=True)
class Subject:
    """One unproven kernel at its workload."""

    problem: Problem
    workload: Workload
    shipped: ShippedKernel

    @property
    def kernel(self) -> str:
        """Its kernel id."""
        return self.problem.kernel_id(self.workload)

    def candidate(self) -> Candidate:
        """Read its source."""
        return read_candidate(self.shipped.source)


def subjects() -> list[Subject]:
    """Return every unproven kernel, in the order of `kopt list`."""
    return [
        Subject(problem, workload, shipped)
        for problem in load_problems().values()
        for workload in problem.workloads
        for shipped in shipped_kernels(problem, workload)
        if shipped.standing == "unproven"
    ]


def main() -> None:
    """Write the facts of each kernel, or the tables of all."""
    parser = argparse.ArgumentParser(description="Facts of the unproven kernels.")
    parser.add_argument("--only", default="", help="part of a kernel id")
    parser.add_argument("--on-gpu", type=Path, help="what unproven_on_gpu.py --save wrote")
    parser.add_argument("--write", type=Path, help="only put the tables into this document")
    options = parser.parse_args()
    chosen = [subject for subject in subjects() if options.only in subject.kernel]
    if options.write:
        all_facts = [read_facts(subject.shipped.evidence) for subject in chosen]
        document = options.write.read_text("utf-8")
        text = insert_between(document, MARKS, tables(all_facts))
        options.write.write_text(text, "utf-8")
        return
    settings = settings_from_environment()
    runs = _runs(options.on_gpu)
    checks: dict[str, SimCheck] = {}
    for subject in chosen:
        print(subject.kernel, flush=True)
        candidate = subject.candidate()
        if candidate.id not in checks:
            checks[candidate.id] = _sim_check(subject, candidate, settings)
        facts = _facts(subject, candidate, checks[candidate.id], settings)
        path = subject.shipped.evidence
        run = _kept(path, runs, facts)
        path.write_text(facts_text(facts.model_copy(update={"other_gpu": run})), "utf-8")


def _runs(path: Path | None) -> list[OtherGpuRun]:
    if path is None:
        return []
    return [OtherGpuRun.model_validate(run) for run in json.loads(path.read_bytes())]


def _kept(path: Path, runs: Sequence[OtherGpuRun], facts: UnprovenFacts) -> OtherGpuRun | None:
    """Return the newest run of this very source on another GPU."""
    old = read_facts(path).other_gpu if path.is_file() else None
    known = [*([old] if old else []), *runs]
    mine = [run for run in known if (run.kernel, run.candidate) == (facts.kernel, facts.candidate)]
    return max(mine, key=lambda run: run.measured_at, default=None)


def _facts(
    subject: Subject, candidate: Candidate, sim: SimCheck, settings: Settings
) -> UnprovenFacts:
    arch = subject.shipped.arch
    reference = read_candidate(subject.problem.folder / "reference.cu")
    build = _build(subject, candidate, arch, settings)
    model = workload_bytes(subject.problem, subject.workload)
    gpu = gpu_for_arch(arch)
    return UnprovenFacts(
        kernel=subject.kernel,
        candidate=candidate.id,
        source_file=subject.shipped.source.name,
        arch=arch,
        gpu=gpu.name,
        tune={k: v for k, v in build.defines.items() if not k.startswith("KOPT_")},
        compiler=f"{build.toolchain.compiler} {build.toolchain.version}",
        needed_bytes=model.total_bytes,
        memory_floor_us=memory_floor_us(model, gpu),
        own=_static(subject, candidate, arch, settings),
        reference=_static(subject, reference, arch, settings),
        elsewhere=_static(subject, candidate, ELSEWHERE, settings),
        sim=sim,
    )


def _static(subject: Subject, candidate: Candidate, arch: str, settings: Settings) -> StaticFacts:
    request = ProfileRequest(
        case=Case(subject.problem, subject.workload, candidate), arch=arch, counters=False
    )
    profile = profile_candidate(request, settings, ProfileDevices(SimDevice(settings)))
    if profile.status is not Status.PASSED or profile.estimate is None:
        raise SystemExit(f"{subject.kernel} on {arch}: {profile.status} {profile.diagnostics}")
    (launch,) = profile.launches
    resources = launch.resources
    loaded = [tensor.load_bytes for tensor in profile.traffic if tensor.load_bytes is not None]
    stored = [tensor.store_bytes for tensor in profile.traffic if tensor.store_bytes is not None]
    return StaticFacts(
        candidate=profile.candidate,
        arch=profile.arch,
        grid=launch.grid,
        block=launch.block,
        registers_per_thread=resources.registers_per_thread,
        spill_bytes=resources.spill_store_bytes + resources.spill_load_bytes,
        static_smem_bytes=resources.static_smem_bytes,
        occupancy=launch.occupancy,
        instructions=resources.instructions,
        instruction_mix=resources.instruction_mix,
        conversions=resources.conversions,
        loads_in_flight=resources.loads_in_flight,
        loaded_bytes=sum(loaded) if loaded else None,
        stored_bytes=sum(stored) if stored else None,
        estimated_us=profile.estimate.latency_us,
    )


def _build(subject: Subject, candidate: Candidate, arch: str, settings: Settings) -> Build:
    """Return the cubin that serves the workload, from the cache after a profile."""
    request = CompileRequest(Case(subject.problem, subject.workload, candidate), archs=(arch,))
    builds = compile_candidate(request, settings).builds
    return next(build for build in builds if subject.workload.name in build.workloads)


def _sim_check(subject: Subject, candidate: Candidate, settings: Settings) -> SimCheck:
    request = CheckRequest(
        Case(subject.problem, subject.workload, candidate), "full", arch=subject.shipped.arch
    )
    result: CheckResult = check_candidate(request, SimDevice(settings), settings)
    return SimCheck(
        status=result.status,
        level=result.level,
        workloads=tuple(one.workload for one in result.workloads),
        executions=sum(one.executions for one in result.workloads),
        cpu_bodies=result.cpu_bodies,
    )


if __name__ == "__main__":
    main()
