"""The device as the runs of one check see it: what lies behind a failed run is not executed.

Several runs are under way at once, while a GPU executes one at a time. Without this, every run that
waits for the GPU when another one hangs would hang there as well, until its own time limit.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device, ExecutionOutcome, ExecutionRequest, Program


class RunNotNeeded(Exception):
    """An earlier run has failed, which decides the check."""


class OrderedDevice:
    """A device for the runs of one check; `run_device` gives each run its own view."""

    def __init__(self, device: Device) -> None:
        """Have the runs of a GPU wait here, and not behind each other in the device."""
        self.device = device
        self.turn: AbstractContextManager[object] = Lock() if device.gpu else nullcontext()
        self._failed: list[int] = []

    def run_device(self, number: int) -> "RunDevice":
        """Return the device for the run of this number, in the order of the check."""
        return RunDevice(self, number)

    def note_failure(self, number: int) -> None:
        """Remember that the run of this number failed."""
        self._failed.append(number)

    def has_failed_before(self, number: int) -> bool:
        """Return whether a run before this one has failed, which decides the check."""
        return any(failed < number for failed in self._failed)


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
        with self.ordered.turn:
            if self.ordered.has_failed_before(self.number):
                raise RunNotNeeded
            outcome = self.ordered.device.execute(request)
            if outcome.status is not Status.PASSED:
                self.ordered.note_failure(self.number)
            return outcome
