"""One GPU for many callers: each has a device of its own to hold, all of them the same workers.

Workers are kept for a few problems, so that callers of different kernels do not end each other's.
What a candidate hurts is replaced as in a process with a GPU of its own (`tools/gpu/device.py`).
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from kopt.config.errors import InfraError, SetupError
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
from kopt.server.far.desk import Helpers, OpenHere
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import (
    LibraryRun,
    TimingDevice,
    TimingFailure,
    TimingRequest,
    TimingSession,
    as_timer,
)
from kopt.tools.gpu.worker_pool import needed_folder

from .turns import Turns, Visitor

MOST_PROBLEMS = 3
"""Problems whose workers are kept; each holds a context, about 0.5 GB of the GPU's memory."""


class SharedGpu:
    """The workers of a GPU, and whose turn it is."""

    def __init__(self, name: str, open_here: OpenHere) -> None:
        """Start nothing yet; `open_here` opens the GPU called `name` with workers of its own."""
        self.turns = Turns(name)
        self.name = name
        self._open_here = open_here
        self._opening = threading.Lock()
        self._devices: dict[Path | None, TimingDevice] = {}  # the one used last is last
        self._handover = threading.Lock()  # of what follows
        self._current: CallersGpu | None = None
        self._used: TimingDevice | None = None

    def for_caller(self, visitor: Visitor, helpers: Helpers, *, has_spare: bool) -> "CallersGpu":
        """Return the GPU as a device of one caller.

        Args:
            visitor: The caller.
            helpers: Gives the caller's builds of kopt's own kernels.
            has_spare: Whether the caller brings many candidates, so that a second worker waits for
                the first to fail; a timing waits until it has started.

        Raises:
            SetupError: There is no such GPU, or what its workers need is not installed.
        """
        return CallersGpu(self, visitor, helpers, has_spare=has_spare)

    def any_device(self) -> TimingDevice:
        """Return the device used last, or a first one."""
        with self._opening:
            if not self._devices:
                self._devices[None] = self._opened()
            return next(reversed(self._devices.values()))

    def device_for(self, problem: Problem | None) -> TimingDevice:
        """Return the device whose workers read a problem's folder; of the caller in turn."""
        folder = None if problem is None else needed_folder(problem)
        if folder is None:
            return self.any_device()
        with self._opening:
            # The first has served nobody that needs a folder: its workers may become this one's.
            found = self._devices.pop(folder, None) or self._devices.pop(None, None)
            while found is None and len(self._devices) >= MOST_PROBLEMS:
                _call(self._devices.pop(next(iter(self._devices))), "close")
            device = found or self._opened()
            self._devices[folder] = device
            return device

    @contextmanager
    def turn(self, caller: "CallersGpu") -> Generator[None]:
        """Have the GPU for one caller inside the `with`."""
        with self.turns.turn(caller.visitor):
            self._pass_to(caller)
            try:
                yield
            finally:
                self._pass_to(None)

    def lend(self, device: TimingDevice, caller: "CallersGpu") -> None:
        """Give the caller in turn a device to use.

        Raises:
            InfraError: The caller has gone.
        """
        with self._handover:
            if caller.visitor.is_gone:
                raise InfraError("the caller has hung up")
            _call(device, "readmit")
            if caller.has_spare:
                _call(device, "keep_spare")
            self._used = device

    def abandon(self, caller: "CallersGpu") -> None:
        """End what a caller that has gone does on a device, if it is that one's turn.

        A turn that has no device yet gets none: `lend` asks whether the caller has gone.
        """
        with self._handover:  # so that it is not the next caller's work that ends
            if self._current is caller:
                _call(self._used, "abandon")

    def rest(self) -> None:
        """Start the second workers of all devices, unless a caller is in turn."""
        with self._opening:
            devices = list(self._devices.values())
        for device in devices:
            if self._current is not None:  # nothing starts beside a measurement, or waits for it
                return
            with suppress(InfraError, SetupError):  # whoever comes next meets and reports it
                _call(device, "rest")

    def close(self) -> None:
        """End all workers."""
        with self._opening:
            for device in self._devices.values():
                _call(device, "close")

    def _pass_to(self, caller: "CallersGpu | None") -> None:
        with self._handover:
            self._current, self._used = caller, None

    def _opened(self) -> TimingDevice:
        opened = self._open_here(self.name, has_spare=False, helpers=self._helpers, told=self._tell)
        timer = as_timer(opened)
        assert timer is not None  # no simulator has a resident evaluator
        return timer

    def _helpers(self, arch: str) -> dict[str, str]:
        return {} if self._current is None else self._current.helpers(arch)

    def _tell(self, line: str) -> None:
        """Tell the caller in turn that a process without this evaluator has the GPU."""
        caller = self._current  # once: another thread may end the turn
        if caller is not None:
            caller.visitor.tell(line)


class CallersGpu:
    """Implements `tools.timer.TimingDevice`; safe from several threads.

    Inside `open_timing` the thread that opened it may go on to use the device; others wait.
    """

    def __init__(
        self, shared: SharedGpu, visitor: Visitor, helpers: Helpers, *, has_spare: bool
    ) -> None:
        """Take a share of the GPU, as `SharedGpu.for_caller` says."""
        self.visitor = visitor
        self.helpers = helpers
        self.has_spare = has_spare
        self._shared = shared
        found = shared.any_device()
        self._name, self._spec, self._facts = found.name, found.gpu, found.facts
        self._holding = threading.local()

    @property
    def name(self) -> str:
        """`cuda:<index>`."""
        return self._name

    @property
    def gpu(self) -> GpuSpec:
        """Its limits and peaks."""
        return self._spec

    @property
    def facts(self) -> DeviceFacts:
        """The GPU and its driver."""
        return self._facts

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Bring up a worker for the program's problem."""
        with self._turn(program.problem) as device:
            return device.prepare(program)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Run the plan once, as `tools.gpu.device.CudaDevice.execute`."""
        with self._turn(request.program.problem) as device:
            return device.execute(request)

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Call a library's function once."""
        with self._turn(run.problem) as device:
            return device.run_library(run)

    @contextmanager
    def open_timing(self, request: TimingRequest) -> Generator[TimingSession | TimingFailure]:
        """Hold the GPU for a timing session; leaving lets it go."""
        with self._turn(request.problem) as device, device.open_timing(request) as session:
            yield session

    def copy_ceiling_gb_s(self) -> float:
        """Return the measured copy bandwidth, 1e9 bytes/s; measured once in an evaluator's life."""
        with self._turn(None) as device:
            return device.copy_ceiling_gb_s()

    def close(self) -> None:
        """Leave the queue; what runs for this caller ends, and its worker with it."""
        self._shared.turns.drop(self.visitor)
        self._shared.abandon(self)

    @contextmanager
    def _turn(self, problem: Problem | None) -> Generator[TimingDevice]:
        held: TimingDevice | None = getattr(self._holding, "device", None)
        if held is not None:
            yield held
            return
        with self._shared.turn(self):
            device = self._shared.device_for(problem)
            self._shared.lend(device, self)
            self._holding.device = device
            try:
                yield device
            finally:
                self._holding.device = None


def _call(device: TimingDevice | None, method: str) -> None:
    """Call a method that not all devices have."""
    found: Callable[[], None] | None = getattr(device, method, None)
    if found is not None:
        found()
