"""The worker's own engine with a clock around its phases; the times lie in the worker's folder."""

import json
import pkgutil
from pathlib import Path

from phase_clock import PhaseClock

from kopt.config.files import write_atomically
from kopt.tools.gpu.messages import Answer, Request
from kopt.tools.gpu.worker.cuda_engine import CudaEngine

TIMES_FILE = "phases.json"
_WORKER = "kopt.tools.gpu.worker"
TARGETS = (
    f"{_WORKER}.execution:MappedFile",
    f"{_WORKER}.execution:overwrite_arrays",
    f"{_WORKER}.cuda_engine:stage",
    f"{_WORKER}.execution:import_library",
    f"{_WORKER}.execution:CallBuffers",
    f"{_WORKER}.pinned_memory:_Pinned",
    f"{_WORKER}.execution:bind_side",
    f"{_WORKER}.execution:_run",
    f"{_WORKER}.buffers:CallBuffers.upload",
    f"{_WORKER}.buffers:CallBuffers.read_back",
    f"{_WORKER}.buffers:guard_damage",
    f"{_WORKER}.buffers:content_damage",
    f"{_WORKER}.timing:MappedFile",
    f"{_WORKER}.timing:overwrite_arrays",
    f"{_WORKER}.timing:BufferSets",
    f"{_WORKER}.timing:Replayer",
    f"{_WORKER}.timing:build_side",
    f"{_WORKER}.timing:bind_library",
    f"{_WORKER}.timing:CallGraph",
    f"{_WORKER}.timing:inspect_call",
    f"{_WORKER}.replayer:Replayer.replay",
    f"{_WORKER}.buffer_sets:BufferSets.close",
    f"{_WORKER}.buffer_sets:BufferSets._allocate",
    f"{_WORKER}.buffer_sets:BufferSets._paint",
    f"{_WORKER}.buffer_sets:BufferSets._upload",
    f"{_WORKER}.buffer_sets:BufferSets._paint_inputs",
    f"{_WORKER}.l2_rotation:SetComparison.damage",
    f"{_WORKER}.driver:synchronize_stream",
    f"{_WORKER}.driver:copy_to_device",
    f"{_WORKER}.driver:copy_to_host",
)


class TimedEngine(CudaEngine):
    """Does what it is asked, and writes down how long it took."""

    def __init__(self) -> None:
        """Wrap, then import as ever."""
        clock = PhaseClock()
        self._clock = clock
        clock.wrap_named(pkgutil, "resolve_name", _import_of)
        with clock.phase("import engine"):
            clock.wrap(TARGETS)
            super().__init__()
        self._folder: Path | None = None

    def answer(self, request: Request, folder: Path) -> Answer:
        """Put the clock around every request."""
        self._folder = folder
        with self._clock.phase(request.kind):
            answer = super().answer(request, folder)
        self._write()
        return answer

    def _write(self) -> None:
        if self._folder is None:
            return
        spent = [[path, one.seconds, one.calls] for path, one in self._clock.spent().items()]
        write_atomically(self._folder / TIMES_FILE, json.dumps(spent), durable=False)


def _import_of(name: str) -> str:
    return f"import {name}"
