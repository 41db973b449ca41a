"""The `sim` device: a candidate's device code on the CPU, checked access by access.

It finds wrong values, memory errors, races and divergence, and counts what the program does. It
measures no time: a time that rests on its counters is an estimate (tools/estimate/stage.py).
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from kopt.config.callbacks import ignore
from kopt.config.device_names import simulator_for
from kopt.config.errors import InfraError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.pollable_event import PollableEvent
from kopt.config.scratch_folder import scratch_folder
from kopt.config.settings import Settings
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import tensor_size_bytes
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy, machine_memory_bytes

from .fault_report import describe_fault, fault_status
from .job_file import JobFile, RunMode, Watched, write_job
from .memory_limit import memory_fault, memory_limit_bytes
from .program import BuildFailure, build_program
from .program_facts import SimProgram
from .second_look import Look, SecondLooks

_MAX_RESIDENT_THREADS = 1 << 16
_MAX_BLOCKS = 1 << 20
# runtime/state.h: kMaxBuffers, kMaxArguments.
_MAX_BUFFERS = 1024
_MAX_ARGUMENTS = 64
_MAX_BUFFER_BYTES = 56 << 30  # buffers lie 64 GiB apart, with 4 GiB before each


class SimDevice:
    """Implements `tools.device.Device`; safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        workers: int | None = None,
        stop: PollableEvent | None = None,
        progress: Callable[[str], None] = ignore,
        *,
        gpu: GpuSpec | None = None,
    ) -> None:
        """Spread the blocks of one execution over `workers` processes (default settings.jobs).

        Once `stop` is set executions end at once, with an InfraError. `progress` is told, from any
        thread, of what keeps the first program waiting. `gpu` is the one that it stands for; None:
        the one whose data sheet stands for the architecture in use.
        """
        self._gpu = gpu
        self._progress = progress
        self._settings = settings
        self._workers = workers or settings.jobs
        self._stop = stop
        self._looks = SecondLooks()

    @property
    def name(self) -> str:
        """`sim`, or `sim:H200` where it stands for another GPU than the architecture's."""
        return simulator_for(self._gpu)

    @property
    def gpu(self) -> GpuSpec | None:
        """The GPU that it stands for; None: the architecture's."""
        return self._gpu

    def standing_for(self, gpu: GpuSpec) -> "SimDevice":
        """Return this simulator for another GPU; both keep what second looks have found."""
        other = copy(self)
        other._gpu = gpu
        return other

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Build the CPU program; None if that went well, else why it cannot run here."""
        limits = _beyond_limits(program)
        if limits is not None:
            return ExecutionOutcome(Status.UNSUPPORTED_ON_SIM, (limits,))
        built = build_program(program, self._settings, self._progress)
        if isinstance(built, BuildFailure):
            return ExecutionOutcome(built.status, built.diagnostics)
        return None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Run the plan once on the CPU.

        Raises:
            SetupError: g++ is missing or KOPT_HOME cannot be written.
            InfraError: The simulator itself failed; that says nothing about the candidate.
        """
        started = time.monotonic()
        refused = self.prepare(request.program)
        if refused is not None:
            return refused
        program = build_program(request.program, self._settings, self._progress)
        assert isinstance(program, SimProgram)  # prepare() built it
        outcome = self._looks.settle(
            program.executable,
            request.program.candidate.source,
            self._workers_for(request.program),
            lambda mode: self._execute_with(request, program, mode),
        )
        return replace(outcome, elapsed_s=time.monotonic() - started)

    def _execute_with(self, request: ExecutionRequest, program: SimProgram, mode: RunMode) -> Look:
        needed = _job_bytes(request.program)
        with scratch_folder("sim", needed) as folder:
            job = write_job(request, program, folder, mode)
            run = self._run(job, program, mode.together)
            if run.memory_is_up:
                fault = memory_fault(
                    memory_limit_bytes(request.program, self._workers, mode.together)
                )
                return Look(ExecutionOutcome(Status.CRASH, (fault,), sandbox=run.level))
            return _look(run, job, program)

    def _workers_for(self, program: Program) -> int:
        """Blocks that talk to each other through atomics must run in one process."""
        source = program.candidate.source
        return 1 if "atomic" in source or "__threadfence" in source else self._workers

    def _run(self, job: JobFile, program: SimProgram, together: bool) -> SandboxedRun:
        executable = Path(program.executable)
        launches = len(job.request.program.plan.launches)
        policy = SandboxPolicy(
            readable=(executable.parent,),
            writable=(job.folder,),
            wall_s=job.request.timeout_s * launches + 10,
            cpu_s=int(job.request.timeout_s * launches * self._workers) + 20,
            file_bytes=1 << 34,
            processes=self._workers + 16,
            tree_bytes=memory_limit_bytes(job.request.program, self._workers, together),
        )
        return run_sandboxed([executable, job.path], policy, self._settings, self._stop)


def _look(run: SandboxedRun, job: JobFile, program: SimProgram) -> Look:
    if run.timed_out:
        note = Diagnostic(message="the simulator did not end within the time limit")
        return Look(ExecutionOutcome(Status.TIMEOUT, (note,), sandbox=run.level))
    if run.stopped:
        raise InfraError("the simulator was told to stop")
    if run.returncode != 0:
        text = run.stderr.decode(errors="replace").strip()[:500]
        raise InfraError(f"the simulator ended with status {run.returncode}: {text}")
    report: Mapping[str, Any] = json.loads(run.stdout)
    outcome = _outcome(report, run, job, program)
    unwritten = outcome.status is Status.UNINITIALIZED_READ
    shared = {variable.name for variable in program.shared} - set(report["buffers"])
    return Look(
        outcome,
        reads_unwritten_shared=unwritten and report["fault"]["variable"] in shared,
        spins=bool(report["spins"]),
        rechecked=tuple(report["rechecked"]),
        race=_race(report["fault"]) if outcome.status is Status.DATA_RACE else None,
    )


def _race(fault: Mapping[str, Any]) -> Watched | None:
    """Return where two accesses race; None for a race of another kind."""
    if not fault["variable"] or not fault["bytes"]:
        return None
    return Watched(str(fault["variable"]), int(fault["offset"]), int(fault["bytes"]))


def _outcome(
    report: Mapping[str, Any], run: SandboxedRun, job: JobFile, program: SimProgram
) -> ExecutionOutcome:
    status = fault_status(report["fault"])
    bodies = tuple(sorted(set(report["cpu_bodies"])))
    if status is not Status.PASSED:
        candidate = job.request.program.candidate
        told = describe_fault(report["fault"], program.executable, candidate)
        return ExecutionOutcome(status, told, sandbox=run.level, cpu_bodies=bodies)
    return ExecutionOutcome(
        status,
        outputs=job.read_outputs(),
        counters=_counters(report, job.request.program),
        sandbox=run.level,
        cpu_bodies=bodies,
        access_lines=_access_lines(report["ran"], program),
    )


def _access_lines(ran: Sequence[int], program: SimProgram) -> dict[int, bool]:
    """Return the lines that load or store; a line in several places has run if one of them has."""
    known = program.access_lines
    return dict.fromkeys(known.values(), False) | {known[at]: True for at in ran if at in known}


def _counters(report: Mapping[str, Any], program: Program) -> ExecutionCounters:
    threads = report["sampled_threads"]
    traffic: dict[str, BufferTraffic] = {}
    maps = {one.name for one in program.plan.tensor_maps}
    for name, counted in report["buffers"].items():
        if name in maps:  # a buffer of the job, but none of the kernel's
            continue
        load, store, requests, sectors, ideal = counted
        traffic[name] = BufferTraffic(
            load_bytes=load,
            store_bytes=store,
            sectors_per_request=sectors / requests if requests else None,
            ideal_sectors_per_request=ideal / requests if requests else None,
        )
    return ExecutionCounters(
        traffic=traffic,
        shared_load_bytes=report["shared_load_bytes"],
        shared_store_bytes=report["shared_store_bytes"],
        barriers_per_block=report["barriers"] / report["blocks"] if report["blocks"] else 0.0,
        load_phases_per_thread=report["sampled_load_phases"] / threads if threads else 0.0,
        global_accesses_per_thread=report["sampled_accesses"] / threads if threads else 0.0,
    )


def _beyond_limits(program: Program) -> Diagnostic | None:
    """Return what of the program the simulator cannot run, before anything is built."""
    plan = program.plan
    buffers = len(program.problem.tensors) + len(plan.scratch) + len(plan.tensor_maps)
    if buffers > _MAX_BUFFERS:
        return Diagnostic(
            message=f"the simulator holds at most {_MAX_BUFFERS} tensors, scratch buffers and "
            f"tensor maps; this plan has {buffers}"
        )
    return _memory_beyond_limits(program) or _plan_beyond_limits(plan)


def _memory_beyond_limits(program: Program) -> Diagnostic | None:
    """Return that this machine cannot hold the buffers, or that one passes its part of the arena.

    What the race detector keeps of them comes on top, as far as elements are touched.
    """
    axes, plan = program.plan.axes, program.plan
    sizes = {t.name: tensor_size_bytes(t, axes) for t in program.problem.tensors}
    sizes |= {s.name: prod(s.shape) * dtype_size_bytes(s.dtype) for s in plan.scratch}
    limit, largest = machine_memory_bytes() * 3 // 4, max(sizes, key=lambda name: sizes[name])
    if sizes[largest] <= _MAX_BUFFER_BYTES and sum(sizes.values()) <= limit:
        return None
    return Diagnostic(
        message=f"tensors and scratch have {sum(sizes.values()) / 1e9:.1f} GB, `{largest}` alone"
        f" {sizes[largest] / 1e9:.1f} GB; the simulator holds {limit / 1e9:.0f} GB on this machine",
        hint="check a smaller workload here, or make scratch smaller: buffers that are not needed"
        " at the same time may share one",
    )


def _plan_beyond_limits(plan: LaunchPlan) -> Diagnostic | None:
    if sum(prod(launch.grid) for launch in plan.launches) > _MAX_BLOCKS:
        return Diagnostic(message=f"the simulator runs at most {_MAX_BLOCKS} blocks in all")
    for tensor_map in plan.tensor_maps:
        if tensor_map.fill == "nan" or tensor_map.interleave != "none":
            return Diagnostic(
                message=f"tensor map `{tensor_map.name}` has `fill: nan` or `interleave`: neither "
                "exists on the simulator"
            )
    for launch in plan.launches:
        if len(launch.arguments) > _MAX_ARGUMENTS:
            return Diagnostic(
                message=f"`{launch.kernel}` has {len(launch.arguments)} arguments; the simulator "
                f"passes at most {_MAX_ARGUMENTS}",
                line=launch.line,
            )
        resident = prod(launch.grid) if launch.cooperative else prod(launch.cluster)
        if resident * prod(launch.block) > _MAX_RESIDENT_THREADS:
            return Diagnostic(
                message=f"`{launch.kernel}` has {resident * prod(launch.block)} threads that must "
                f"be resident together; the simulator holds {_MAX_RESIDENT_THREADS}",
                line=launch.line,
            )
        if launch.cluster[1:] != (1, 1):
            return Diagnostic(
                message=f"`{launch.kernel}` has clusters along y or z; the simulator runs "
                "clusters along x only",
                line=launch.line,
            )
    return None


def _job_bytes(program: Program) -> int:
    axes = program.plan.axes
    tensors = sum(tensor_size_bytes(tensor, axes) for tensor in program.problem.tensors)
    return tensors + sum(prod(s.shape) * 8 for s in program.plan.scratch)
