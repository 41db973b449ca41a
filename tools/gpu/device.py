"""The `cuda:N` device as kopt sees it: real executions and real times, from a worker process.

This process never creates a CUDA context. It holds the GPU's lock for one request, or for a whole
timing session, asks the worker, and says what an answer means; a worker that was hurt is replaced.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from kopt.config.errors import InfraError
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.graph_runs import GraphResults, GraphRuns
from kopt.kernels.problem import Problem
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import (
    CandidateSide,
    LibraryRun,
    LibrarySide,
    TimingFailure,
    TimingRequest,
    TimingSession,
)

from .array_file import WrittenInputs
from .discovery import FoundGpu
from .draw_names import named_draws
from .execution_end import (
    Execution,
    ExecutionEnd,
    execute_request,
    hurts_worker,
    may_pass_elsewhere,
    outcome_of_answer,
)
from .gpu_turns import GpuTurns
from .graph_worker import GraphWorker
from .messages import (
    CopyCeilingAnswer,
    CopyCeilingRequest,
    Done,
    ExecuteAnswer,
    StageRequest,
)
from .ticket_lock import TicketLock, Wait
from .timing_session import WorkerTimingSession
from .worker_pool import WorkerPool, needed_folder
from .worker_process import WorkerEnd, WorkerProcess, ask_for

_SPARE_S = 10.0
"""Longest wait before a timing for a spare that is starting; it takes a second, torch four."""
_COPY_CEILING_S = 60.0
_STAGE_S = 180.0
"""For the images of buffers, and for the imports of a library from a cold disk."""


class CudaDevice:
    """Implements `tools.device.Device` and `tools.timer.Timer`; safe from several threads.

    Threads take turns. Inside `open_timing` the thread that opened it may go on to use the device;
    others wait.
    """

    def __init__(
        self,
        gpu: FoundGpu,
        pool: WorkerPool,
        lock: TicketLock,
        on_wait: Callable[[str], None] | None = None,
        *,
        graphs: WorkerPool | None = None,
    ) -> None:
        """Start nothing yet; open_gpu.py brings the parts together.

        Args:
            gpu: The GPU.
            pool: Its workers.
            lock: The GPU's lock among the processes of this host.
            on_wait: Called with a line when others are before this process, and each time that
                changes.
            graphs: The process that runs graphs of oracles; None: it runs none.
        """
        self._gpu = gpu
        self._pool = pool
        self._on_wait = on_wait
        self._turns = GpuTurns(lock, pool, self._tell_wait)
        self._graphs = GraphWorker(graphs, self._turns, self._tell)
        self._is_abandoned = False
        self._inputs = WrittenInputs()
        self._copy_ceiling_gb_s: float | None = None

    @property
    def name(self) -> str:
        """`cuda:<index>`, counted within CUDA_VISIBLE_DEVICES."""
        return self._gpu.name

    @property
    def gpu(self) -> GpuSpec:
        """Its limits and peaks."""
        return self._gpu.spec

    @property
    def facts(self) -> DeviceFacts:
        """The GPU and its driver."""
        return self._gpu.facts

    def prepare(self, program: Program) -> None:
        """Bring up the worker: its process and its context.

        Raises:
            SetupError: No worker can start here.
            InfraError: It could not create a context.
        """
        with self._turns.of_thread():
            self._worker_for(program.problem)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Run the plan once on poisoned, guarded buffers; a candidate's failure is a status.

        Raises:
            SetupError: No worker can start here.
            InfraError: The worker or the device failed, not the candidate.
        """
        program = request.program
        if program.cubin_path is None:
            raise ValueError("a GPU executes a cubin: compile the candidate first")
        return self._execute(
            Execution(
                request,
                problem=program.problem,
                workload=program.problem.workload(program.plan.workload),
                side=CandidateSide(plan=program.plan, cubin_path=str(program.cubin_path)),
            )
        )

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Call a library's function once on poisoned buffers.

        A path that cannot run here is `launch_error`, with the library's own words.

        Raises:
            SetupError: No worker can start here.
            InfraError: The worker or the device failed, not the library.
        """
        return self._execute(Execution(run, run.problem, run.workload, run.side))

    @contextmanager
    def open_timing(self, request: TimingRequest) -> Generator[TimingSession | TimingFailure]:
        """Hold the device, lay out buffers, capture graphs and warm up; leaving frees all.

        Raises:
            SetupError: No worker can start here.
            InfraError: The worker or the device failed; also from the session's methods.
        """
        library = any(isinstance(side, LibrarySide) for side in request.sides)
        with self._turns.of_thread():
            worker = self._worker_for(request.problem, library=library)
            self._pool.settle(_SPARE_S)
            inputs = self._inputs.file_in(worker.folder, named_draws(request.draws))
            session = WorkerTimingSession(worker, request, inputs)
            with self._turns.hold():
                failure = session.open()
                yield failure or session
                if not session.close():
                    self._pool.discard()

    def copy_ceiling_gb_s(self) -> float:
        """Return the measured device copy bandwidth, 1e9 bytes/s; measured once per process.

        Raises:
            SetupError: No worker can start here.
            InfraError: The worker or the device failed.
        """
        with self._turns.of_thread():
            if self._copy_ceiling_gb_s is None:
                self._copy_ceiling_gb_s = self._measure_copy_ceiling()
            return self._copy_ceiling_gb_s

    def run_graph(self, runs: GraphRuns) -> GraphResults | None:
        """Return the results of an oracle's graph; None if it does not run here.

        Raises:
            InfraError: This use of the device was abandoned.
        """
        return self._graphs.run(runs, self._refuse_if_abandoned)

    def abandon(self) -> None:
        """End what a thread does with the GPU, or is about to do, from another thread.

        Whatever is asked until `readmit` meets an InfraError; what comes then finds a fresh worker.
        """
        self._is_abandoned = True
        self._pool.end_current()
        self._graphs.abandon()

    def readmit(self) -> None:
        """Serve again after `abandon`, by a fresh worker; no other thread uses the device now."""
        if self._is_abandoned:
            self._pool.discard()
        self._is_abandoned = False

    def keep_spare(self) -> None:
        """Have a second worker from the end of this use of the device on."""
        self._pool.keep_spare()

    def rest(self) -> None:
        """Start the second worker now, as nothing is measured."""
        with self._turns.of_thread():
            self._pool.keep_spare()

    def renew(self) -> None:
        """End the worker: what comes next runs in a process that has run nothing."""
        with self._turns.hold():
            self._pool.discard()

    def close(self) -> None:
        """End all worker processes; the device is not used afterwards."""
        self._pool.close()
        self._graphs.close()

    def _measure_copy_ceiling(self) -> float:
        worker = self._worker_for(None)
        self._pool.settle(_SPARE_S)
        with self._turns.hold():
            answer = ask_for(CopyCeilingAnswer, worker, CopyCeilingRequest(), _COPY_CEILING_S)
        if not isinstance(answer, CopyCeilingAnswer):
            raise InfraError(f"the GPU worker ended while it copied: {answer.detail}")
        return answer.gb_s

    def _execute(self, execution: Execution) -> ExecutionOutcome:
        started = time.monotonic()
        with self._turns.of_thread():
            worker, answer = self._stage_and_execute(execution)
            if may_pass_elsewhere(answer):
                worker, answer = self._stage_and_execute(execution)
            outcome = outcome_of_answer(execution, worker, answer)
        return replace(outcome, elapsed_s=time.monotonic() - started)

    def _stage_and_execute(self, execution: Execution) -> tuple[WorkerProcess, ExecutionEnd]:
        """Have a worker make all ready that needs no GPU, then hold the GPU for the execution.

        Raises:
            InfraError: The worker was not ready in time, or failed; no candidate ran in it.
        """
        side = execution.side
        candidate = side if isinstance(side, CandidateSide) else None
        worker = self._worker_for(
            execution.problem,
            None if candidate is None else candidate.cubin_path,
            library=isinstance(side, LibrarySide),
        )
        inputs = self._inputs.file_in(worker.folder, execution.request.inputs)
        request = execute_request(execution, inputs)
        # What it cannot do it says again when it is asked to execute.
        staged = ask_for(Done, worker, StageRequest(execution=request), _STAGE_S)
        if isinstance(staged, WorkerEnd) and staged.reason == "timeout":
            self._pool.discard()
            raise InfraError(f"the GPU worker prepared no execution within {_STAGE_S:g} s")
        self._refuse_if_abandoned()
        with self._turns.hold():
            answer = ask_for(ExecuteAnswer, worker, request, execution.request.timeout_s)
            if may_pass_elsewhere(answer) or hurts_worker(answer):
                self._pool.discard()  # its context goes before another process measures
        return worker, answer

    def _worker_for(
        self, problem: Problem | None, program: str | None = None, *, library: bool = False
    ) -> WorkerProcess:
        """Return the worker for a problem; None for any worker.

        Raises:
            InfraError: This use of the device was abandoned, perhaps under a first worker.
        """
        folder = None if problem is None else needed_folder(problem)
        self._refuse_if_abandoned()  # before a worker is started for nobody
        if self._pool.must_replace(folder, program):
            with self._turns.hold():
                self._pool.discard()
        worker = self._pool.process_for(folder, program, library)
        if not self._pool.has_context:
            with self._turns.hold():
                self._pool.create_context()
        self._refuse_if_abandoned()
        return worker

    def _refuse_if_abandoned(self) -> None:
        if self._is_abandoned:
            raise InfraError("what ran on the GPU was ended")

    def _tell_wait(self, wait: Wait) -> None:
        self._tell(wait.told_of(self.name))

    def _tell(self, line: str) -> None:
        if self._on_wait is not None:
            self._on_wait(line)
