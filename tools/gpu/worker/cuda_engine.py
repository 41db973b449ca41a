"""The engine of a worker with a GPU: holds the context and at most one open timing session.

Every request is handed on to a module of its own; nothing is computed here.
"""

from pathlib import Path

from kopt.config.errors import InfraError
from kopt.tools.gpu.messages import (
    Answer,
    CandidateRequest,
    CloseTimingRequest,
    CollectRequest,
    CopyCeilingAnswer,
    CopyCeilingRequest,
    Done,
    ExecuteRequest,
    FaultAnswer,
    GraphRunsRequest,
    OpenTimingAnswer,
    OpenTimingRequest,
    ReplayRequest,
    Request,
    StageRequest,
    StartAnswer,
    StartRequest,
    WarmRequest,
)

from .context import WorkerContext, open_context
from .copy_ceiling import copy_ceiling_gb_s
from .driver import bindings
from .execution import StagedExecution, execute, stage
from .failure import ExecutionFailure
from .timing import TimingEnd, open_timing


class CudaEngine:
    """Implements `worker.__main__.Engine`."""

    def __init__(self) -> None:
        """Import what a context needs; create none.

        Raises:
            SetupError: cuda.bindings is not installed.
        """
        bindings()
        self._worker: WorkerContext | None = None
        self._timing: TimingEnd | None = None
        self._staged: StagedExecution | None = None

    def answer(self, request: Request, folder: Path) -> Answer:
        """Do what `request` asks; what CUDA or a library says against a side is an answer, too."""
        if isinstance(request, GraphRunsRequest):  # a candidate may have run here
            raise InfraError("graphs of oracles run in a worker of their own")
        try:
            return self._answer(request, folder)
        except ExecutionFailure as failure:
            return FaultAnswer(fault=failure.fault, side=failure.side)

    def _answer(self, request: CandidateRequest, folder: Path) -> Answer:
        match request:
            case StartRequest():
                return self._start(request)
            case StageRequest():
                self._unstage()
                self._staged = stage(request.execution, folder, self._context())
                return Done()
            case ExecuteRequest():
                return execute(self._staged_for(request, folder), folder, self._context())
            case OpenTimingRequest():
                return self._open_timing(request, folder)
            case ReplayRequest():
                return self._session().replay(request.sequence)
            case CollectRequest():
                return self._session().collect(folder, request.places)
            case WarmRequest():
                return self._session().warm(request.side)
            case CloseTimingRequest():
                return self._close_timing()
            case CopyCeilingRequest():
                worker = self._context()
                gb_s = copy_ceiling_gb_s(worker.facts.l2_bytes, worker.stream)
                return CopyCeilingAnswer(gb_s=gb_s)

    def _start(self, request: StartRequest) -> Answer:
        if self._worker is not None:
            raise InfraError("the worker has a context already")
        self._worker = open_context(request)
        return StartAnswer(facts=self._worker.facts)

    def _staged_for(self, request: ExecuteRequest, folder: Path) -> StagedExecution:
        """Return what was staged for `request`; where something else was, or nothing, it is now."""
        staged, self._staged = self._staged, None
        if staged is not None and staged.data.request == request:
            return staged
        if staged is not None:
            staged.close()
        return stage(request, folder, self._context())

    def _unstage(self) -> None:
        staged, self._staged = self._staged, None
        if staged is not None:
            staged.close()

    def _open_timing(self, request: OpenTimingRequest, folder: Path) -> Answer:
        if self._timing is not None:
            raise InfraError("a timing session is open already")
        self._timing = open_timing(request, folder, self._context())
        return OpenTimingAnswer(facts=self._timing.facts)

    def _close_timing(self) -> Answer:
        session, self._timing = self._timing, None
        if session is not None:
            session.close()
        return Done()

    def _context(self) -> WorkerContext:
        if self._worker is None:
            raise InfraError("the worker has no context yet")
        return self._worker

    def _session(self) -> TimingEnd:
        if self._timing is None:
            raise InfraError("no timing session is open")
        return self._timing
