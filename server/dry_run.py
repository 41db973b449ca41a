"""`kopt run --dry-run`: the plan of a run, or of one run for each kernel, and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kopt.config.callbacks import ignore
from kopt.config.gpu_specs import gpu_for_arch
from kopt.search.forecast.run_plan import RunPlan, plan_run
from kopt.search.runs.run import RunRequest
from kopt.server.views.plan_view import plan_view

from .console import print_document, print_record, print_view
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
    _print(session, plans)
    return ExitCode.PASSED


def _print(session: Session, plans: Sequence[RunPlan]) -> None:
    if session.as_json and len(plans) == 1:
        print_record(plans[0])
    elif session.as_json:
        documents = [json.loads(plan.model_dump_json(by_alias=True)) for plan in plans]
        print_document({"schema": "kopt.run-plans/1", "status": "passed", "plans": documents})
    elif len(plans) == 1:
        print_view(plan_view(plans[0]))
    else:
        print_view((*plan_view(plans[0]), _each(plans)))


def _each(plans: Sequence[RunPlan]) -> RenderableType:
    """Return a line for each kernel, because only the first is shown in detail."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("kernel", "USD, estimated", "at most"):
        table.add_column(head, justify="left" if head == "kernel" else "right")
    for plan in plans:
        table.add_row(plan.kernel, f"{plan.expected_usd:.2f}", f"{plan.most_usd:,.2f}")
    total = sum(plan.expected_usd for plan in plans)
    most = sum(plan.most_usd for plan in plans)
    table.add_row("all", f"{total:.2f}", f"{most:,.2f}", style="bold")
    return Group(Text("\nA run for each kernel; the first stands above.", style="dim"), table)
