"""Why a dependent launch is wrong: whether it is right once its inputs are there from the start.

On a GPU the check writes the inputs of a dependent launch while it may already run. What it reads
before its wait is then other data, and nothing in the values says so.
"""

from dataclasses import replace

from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device, ExecutionRequest

from .case_data import CaseData
from .judge import judge

_EARLY_READ = Diagnostic(
    message="right only where the launch before has ended: it reads what that launch writes before "
    "griddepcontrol.wait",
    hint="look for loads above the wait, in the machine code too (above ACQBULK): the compiler may "
    "move read-only loads there (ld.global.nc, __ldg, pointers that are const and __restrict__)",
)


def explain_early_read(
    request: ExecutionRequest, data: CaseData, device: Device
) -> Diagnostic | None:
    """Return what is wrong with a refused dependent launch if that is an early read, else None.

    Executes once more, if the first launch is a dependent one and the device a GPU.
    """
    launches = request.program.plan.launches
    if device.gpu is None or not launches or not launches[0].pdl:
        return None
    outcome = device.execute(replace(request, late_inputs=False))
    if outcome.status is not Status.PASSED:
        return None
    is_right = judge(data, outcome.outputs, request.poison).refused is None
    return _EARLY_READ if is_right else None
