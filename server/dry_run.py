"""`kopt run --dry-run`: the plan of a run, or of one run for each kernel, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from kopt.config.callbacks import ignore
from kopt.config.gpu_specs import gpu_for_arch
from kopt.search.forecast.run_plan import RunPlan, plan_run
from kopt.search.runs.run import RunRequest
from kopt.server.views.plan_view import plan_view
from kopt.server.views.tables import View, grid

from .devices import DeviceChoice, opened_device
from .exits import ExitCode
from .session import Session


def print_dry_run(session: Session, requests: Sequence[RunRequest], choice: DeviceChoice) -> int:
    """Print what each run would do on the device that it would have; nothing is begun or asked.

    Raises:
        ToolError: A kernel or a start that is not there.
        SetupError: No such device here, or a model whose price is not known.
    """
    # Looked at and not used: nothing waits for a GPU here.
    with opened_device(choice, session.settings, ignore) as opened:
        facts = None if opened.timer is None else opened.timer.facts
        gpu = opened.device.gpu or gpu_for_arch(opened.arch)
        name, arch = opened.device.name, opened.arch
        asked = [replace(one, device=name, arch=arch, gpu=facts) for one in requests]
        plans = [plan_run(request, session.settings, gpu) for request in asked]
    if len(plans) == 1:
        session.show(plans[0], plan_view(plans[0]))
        return ExitCode.PASSED
    documents = [plan.model_dump(mode="json", by_alias=True) for plan in plans]
    document = {"schema": "kopt.run-plans/1", "status": "passed", "plans": documents}
    session.show(document, _plans_view(plans))
    return ExitCode.PASSED


def _plans_view(plans: Sequence[RunPlan]) -> View:
    """Yield the first plan in detail, then a line for each kernel."""
    yield from plan_view(plans[0])
    yield Text("\nA run for each kernel; the first stands above.", style="dim")
    table = grid("kernel", "USD, estimated#", "at most#")
    for plan in plans:
        table.add_row(plan.kernel, f"{plan.expected_usd:.2f}", f"{plan.most_usd:,.2f}")
    total = sum(plan.expected_usd for plan in plans)
    most = sum(plan.most_usd for plan in plans)
    table.add_row("all", f"{total:.2f}", f"{most:,.2f}", style="bold")
    yield table
