"""A scripted timing device that knows the plain copy beside the problems of tests."""

from dataclasses import dataclass, field

import numpy as np

from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest

from .scripted_timer import FACTS, ScriptedTimer


@dataclass
class CopyingTimer(ScriptedTimer):
    """Copies what device_copy is given; all else is as scripted. Copies take `reference_us`."""

    device_facts: DeviceFacts = field(default_factory=lambda: FACTS)
    spoils_copy: bool = False

    @property
    def facts(self) -> DeviceFacts:
        """The device that it is said to be."""
        return self.device_facts

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Return the beginning of the input, zeros behind its end, for a copy."""
        if request.program.problem.name != "device_copy":
            return super().execute(request)
        x = request.inputs["x"]
        y = np.zeros((1, request.program.plan.axes["W8"]), dtype=x.dtype)
        columns = min(x.shape[1], y.shape[1])
        y[:, :columns] = x[:, :columns]
        if self.spoils_copy:
            y[0, -1] = 99.0
        return ExecutionOutcome(Status.PASSED, outputs={"y": y})
