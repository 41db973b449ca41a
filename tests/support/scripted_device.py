"""A `CudaDevice` over workers that play a GPU, and what a test may ask of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Baseline, Problem
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import CandidateSide, LibraryRun, LibrarySide, Side, TimingRequest
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.gpu.messages import StartRequest
from kopt.tools.gpu.ticket_lock import TicketLock
from kopt.tools.gpu.worker_policy import WorkerSpec
from kopt.tools.gpu.worker_pool import WorkerPool
from kopt.tools.gpu.worker_process import WorkerProcess
from support.bench_results import H100
from support.scripted_gpu import ENGINE
from support.tiny_problem import tiny_candidate

INPUTS: Arrays = {
    "x": np.arange(8 * 64, dtype=np.float32).reshape(8, 64),
    "weight": np.zeros(64, dtype=np.uint16),
}


@dataclass
class ScriptedDevice:
    """The device with everything that was made for it."""

    settings: Settings
    problem: Problem
    locks: Path
    engine: str = ENGINE
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])
    kinds: list[tuple[Path | None, bool]] = field(default_factory=list[tuple[Path | None, bool]])
    """Folder, and whether libraries are imported early, of each worker in the order made."""
    waits: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        """Bring the parts together; nothing is started."""
        self.lock = TicketLock(H100.uuid, self.locks)
        self.device = self.another()

    def another(
        self, on_wait: Callable[[str], None] | None = None, *, has_spare: bool = True
    ) -> CudaDevice:
        """Return a second device for the same GPU, as another process would have it."""
        gpu = FoundGpu(H100, load_gpus()["H100"])
        pool = self.pool(has_spare=has_spare)
        return CudaDevice(gpu, pool, self.lock, on_wait or self.waits.append)

    def pool(self, *, has_spare: bool = True) -> WorkerPool:
        """Return workers, none of them started."""
        start = StartRequest(device_uuid=H100.uuid)
        return WorkerPool(self._make, lambda: start, has_spare=has_spare)

    def execute(self, act: str = "", timeout_s: float = 60.0) -> ExecutionOutcome:
        """Execute a candidate that does `act`."""
        return self.device.execute(self.request(act, timeout_s))

    def request(
        self, act: str = "", timeout_s: float = 60.0, problem: Problem | None = None
    ) -> ExecutionRequest:
        """Return a request for a candidate that does `act`."""
        program = Program(tiny_candidate(), problem or self.problem, plan(), Path("/cubins", act))
        return ExecutionRequest(program, INPUTS, poison=0xA5, timeout_s=timeout_s)

    def identity(self) -> float:
        """Return the number of the worker at hand."""
        return float(self.execute("execute identity").outputs["out"].flat[0])

    def run_library(self, act: str = "") -> ExecutionOutcome:
        """Run a library's function that does `act`."""
        workload = self.problem.workload("b8xh64")
        return self.device.run_library(
            LibraryRun(self.problem, workload, library_side(act), INPUTS, poison=0xA5)
        )

    def timing(self, *sides: Side, timeout_s: float = 60.0) -> TimingRequest:
        """Return what opens a session over `sides`."""
        return TimingRequest(
            problem=self.problem,
            workload=self.problem.workload("b8xh64"),
            sides=sides,
            inputs=INPUTS,
            poison=0xA5,
            layout_seed=1,
            timeout_s=timeout_s,
        )

    def _make(self, folder: Path | None, library: bool) -> WorkerProcess:
        self.kinds.append((folder, library))
        readable = () if folder is None else (folder,)
        self.workers.append(WorkerProcess(WorkerSpec(self.engine, (), readable), self.settings))
        return self.workers[-1]


def plan(pdl: bool = False) -> LaunchPlan:
    """Return a plan of one launch."""
    launch = Launch(kernel="scale_rows", grid=(8, 1, 1), block=(128, 1, 1), pdl=pdl, arguments=())
    return LaunchPlan(workload="b8xh64", axes={"B": 8, "H": 64}, defines={}, launches=(launch,))


def side(act: str = "") -> CandidateSide:
    """Return the side of a candidate that does `act`."""
    return CandidateSide(plan=plan(), cubin_path=f"/cubins/{act}")


def library_side(act: str = "") -> LibrarySide:
    """Return the side of a library that does `act`."""
    return LibrarySide(baseline=Baseline(name="b", entry="run", layout=act or "none"), pdl=False)
