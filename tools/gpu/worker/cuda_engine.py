"""The engine of a worker with a GPU: holds the context and at most one open timing session.

Every method hands on to a module of its own; nothing is computed here.
"""

from pathlib import Path

from kopt.config.errors import InfraError
from kopt.tools.gpu.messages import (
    CloseTimingRequest,
    CollectAnswer,
    CollectRequest,
    CopyCeilingAnswer,
    CopyCeilingRequest,
    Done,
    ExecuteAnswer,
    ExecuteRequest,
    OpenTimingAnswer,
    OpenTimingRequest,
    ReplayAnswer,
    ReplayRequest,
    StartAnswer,
    StartRequest,
    WarmAnswer,
    WarmRequest,
)

from . import execution, timing
from .context import WorkerContext, open_context
from .copy_ceiling import copy_ceiling_gb_s
from .driver import bindings
from .timing import TimingEnd


class CudaEngine:
    """Implements `worker.engine.Engine`."""

    def __init__(self) -> None:
        """Import what a context needs; create none.

        Raises:
            SetupError: cuda.bindings is not installed.
        """
        bindings()
        self._worker: WorkerContext | None = None
        self._timing: TimingEnd | None = None

    def start(self, request: StartRequest) -> StartAnswer:
        """Create the context."""
        if self._worker is not None:
            raise InfraError("the worker has a context already")
        self._worker = open_context(request)
        return StartAnswer(facts=self._worker.facts)

    def execute(self, request: ExecuteRequest, folder: Path) -> ExecuteAnswer:
        """Run one side once."""
        return execution.execute(request, folder, self._context())

    def open_timing(self, request: OpenTimingRequest, folder: Path) -> OpenTimingAnswer:
        """Open a session; only one at a time."""
        if self._timing is not None:
            raise InfraError("a timing session is open already")
        self._timing, answer = timing.open_timing(request, folder, self._context())
        return answer

    def replay(self, request: ReplayRequest) -> ReplayAnswer:
        """Replay sides of the open session."""
        return self._session().replay(request.sequence)

    def collect(self, request: CollectRequest, folder: Path) -> CollectAnswer:
        """Write the outputs of sets."""
        return self._session().collect(folder, request.places)

    def warm(self, request: WarmRequest) -> WarmAnswer:
        """Time one side of the open session with a warm L2."""
        return self._session().warm(request.side)

    def close_timing(self, request: CloseTimingRequest) -> Done:
        """Free the open session."""
        del request
        session, self._timing = self._timing, None
        if session is not None:
            session.close()
        return Done()

    def copy_ceiling(self, request: CopyCeilingRequest) -> CopyCeilingAnswer:
        """Measure the device's copy bandwidth."""
        del request
        worker = self._context()
        gb_s = copy_ceiling_gb_s(worker.facts.l2_bytes, worker.stream)
        return CopyCeilingAnswer(gb_s=gb_s)

    def _context(self) -> WorkerContext:
        if self._worker is None:
            raise InfraError("the worker has no context yet")
        return self._worker

    def _session(self) -> TimingEnd:
        if self._timing is None:
            raise InfraError("no timing session is open")
        return self._timing
