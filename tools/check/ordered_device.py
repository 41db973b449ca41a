"""The device as the runs of one check see it: what lies behind a failed run is not executed.

Several runs are under way at once, while a GPU executes one at a time, in the order of the check:
a kernel that hangs keeps the GPU for the time limit of one run, whoever else waits for it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.status import Status
from kopt.tools.devices.device import (
    Device,
    ExecutionOutcome,
    ExecutionRequest,
    Program,
    is_simulator,
)


class RunNotNeeded(Exception):
    """An earlier run has failed, which decides the check."""


class OrderedDevice:
    """A device for the runs of one check, numbered from 0; `run_device` gives each its own view.

    Where the device is a GPU each run must either execute or `end`.
    """

    def __init__(self, device: Device) -> None:
        """Have the runs of a GPU wait here, and not behind each other in the device."""
        self.device = device
        self._failed: list[int] = []
        self._changed = Condition()  # of what follows
        self._is_busy = False
        self._next = 0
        self._past: set[int] = set()

    def run_device(self, number: int) -> "RunDevice":
        """Return the device for the run of this number, in the order of the check."""
        return RunDevice(self, number)

    @contextmanager
    def turn(self, number: int) -> Generator[None]:
        """Have a GPU inside the `with`, once all runs before have had it or are over."""
        if is_simulator(self.device):
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: number <= self._next and not self._is_busy)
            self._is_busy = True
        try:
            yield
        finally:
            with self._changed:
                self._is_busy = False
                self._pass(number)

    def end(self, number: int) -> None:
        """Let the runs behind this one pass, which executes no more."""
        with self._changed:
            self._pass(number)

    def note_failure(self, number: int) -> None:
        """Remember that the run of this number failed."""
        self._failed.append(number)

    def has_failed_before(self, number: int) -> bool:
        """Return whether a run before this one has failed, which decides the check."""
        return any(failed < number for failed in self._failed)

    def _pass(self, number: int) -> None:
        self._past.add(number)
        while self._next in self._past:
            self._next += 1
        self._changed.notify_all()


@dataclass(frozen=True)
class RunDevice:
    """The device of one run; implements `tools.devices.device.Device`."""

    ordered: OrderedDevice
    number: int

    @property
    def name(self) -> str:
        return self.ordered.device.name

    @property
    def gpu(self) -> GpuSpec | None:
        return self.ordered.device.gpu

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        return self.ordered.device.prepare(program)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Return what the device does.

        Raises:
            RunNotNeeded: A run before this one has failed.
            InfraError: The device failed, not the candidate.
        """
        with self.ordered.turn(self.number):
            if self.ordered.has_failed_before(self.number):
                raise RunNotNeeded
            outcome = self.ordered.device.execute(request)
            if outcome.status is not Status.PASSED:
                self.ordered.note_failure(self.number)
            return outcome
