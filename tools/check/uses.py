"""Which workloads a check runs where: those that are there to be timed need a GPU.

A simulator executes a few million elements in seconds. A problem may therefore name small shapes
for checking and its real ones for timing (`use: time`), and a check on `sim` passes over the
latter: they are compiled, and the result says that they were not run.
"""

from collections.abc import Sequence

from kopt.config.errors import ToolError
from kopt.kernels.problem import Problem, Workload
from kopt.tools.devices.device import Device, is_simulator

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
    refuse_timed_workload(case.problem, case.workload, device, case.domain)


def refuse_timed_workload(
    problem: Problem, workload: Workload, device: Device, domain: Sequence[Workload] | None = None
) -> None:
    """Return if `device` runs a workload.

    Args:
        problem: The workload's.
        workload: Asked for.
        device: To run it on.
        domain: Those of the problem's workloads that could be named instead; None for all.

    Raises:
        ToolError: It does not; the message names the kernels that it does run.
    """
    if not _is_passed_over(workload, device):
        return
    named = problem.workloads if domain is None else domain
    others = [problem.kernel_id(one) for one in named if one.use != "time"]
    instead = (
        f"check {' or '.join(others[:3])} here" if others else "no kernel of it is checked here"
    )
    raise ToolError(
        f"{problem.kernel_id(workload)} is `use: time`: a GPU checks and times it, {device.name}"
        f" never runs it; {instead}, or name a GPU (--device cuda:0)"
    )


def _planned(plans: CheckPlans) -> tuple[Workload, ...]:
    return tuple(map(plans.case.problem.workload, plans.plans))


def _is_passed_over(workload: Workload, device: Device) -> bool:
    return is_simulator(device) and workload.use == "time"
