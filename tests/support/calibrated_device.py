"""A GPU that is measured without one: probes run on the simulator, times are scripted."""

from dataclasses import dataclass
from typing import cast

from kopt.config.settings import Settings
from kopt.kernels.device_facts import DeviceFacts
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.sim.device import SimDevice

from .copying_timer import CopyingTimer
from .scripted_timer import FACTS, QUIET, Script


@dataclass
class CalibratedDevice(CopyingTimer):
    """What the probes write comes from the simulator, whose clock is the processor's."""

    sim: SimDevice | None = None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Run a probe on the simulator, anything else as scripted."""
        if request.program.problem.name != "calibration":
            return super().execute(request)
        assert self.sim is not None
        return self.sim.execute(request)


def calibrated_device(settings: Settings, facts: DeviceFacts = FACTS) -> TimingDevice:
    """Return a device whose copies take 5 us and whose empty launches take 1.1 us."""
    script = Script(reference_us=5.0, empty_us=1.1, noise=QUIET)
    device = CalibratedDevice(script, device_facts=facts, sim=SimDevice(settings))
    return cast(TimingDevice, device)
