"""Which workloads a check runs where: those that are there to be timed need a GPU.

A simulator executes a few million elements in seconds. A problem may therefore name small shapes
for checking and its real ones for timing (`use: time`), and a check on `sim` passes over the
latter: they are compiled, and the result says that they were not run.
"""

from kopt.config.errors import ToolError
from kopt.kernels.problem import Workload
from kopt.tools.devices.device import Device

from .request import CheckPlans, CheckRequest


def run_workloads(plans: CheckPlans, device: Device) -> tuple[Workload, ...]:
    """Return the workloads of `plans` that `device` runs."""
    return tuple(one for one in _planned(plans) if not _is_passed_over(one, device))


def passed_over(plans: CheckPlans, device: Device) -> tuple[str, ...]:
    """Return the names of the workloads of `plans` that `device` does not run."""
    return tuple(one.name for one in _planned(plans) if _is_passed_over(one, device))


def refuse_only_timed(request: CheckRequest, device: Device) -> None:
    """Return if `device` runs the named workload.

    Raises:
        ToolError: It does not; the message names the kernels that it does run.
    """
    case = request.case
    if not _is_passed_over(case.workload, device):
        return
    others = [case.problem.kernel_id(one) for one in case.domain if one.use != "time"]
    instead = (
        f"check {' or '.join(others[:3])} here" if others else "no kernel of it is checked here"
    )
    raise ToolError(
        f"{case.kernel_id} is `use: time`: a GPU checks and times it, {device.name} never runs it;"
        f" {instead}, or name a GPU (--device cuda:0)"
    )


def _planned(plans: CheckPlans) -> tuple[Workload, ...]:
    return tuple(map(plans.case.problem.workload, plans.plans))


def _is_passed_over(workload: Workload, device: Device) -> bool:
    return device.gpu is None and workload.use == "time"
