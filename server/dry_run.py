"""`kopt run --dry-run`: the plan of a run, or of one run for each kernel, and nothing else."""

import json
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kopt.search.forecast.run_plan import RunPlan

from .console import print_document, print_record, print_views
from .session import Session
from .views.plan_view import plan_view


def print_plans(session: Session, plans: Sequence[RunPlan]) -> None:
    """Print what each run would do; of several, one line each and the first in detail."""
    if len(plans) == 1 and session.as_json:
        print_record(plans[0])
    elif session.as_json:
        documents = [json.loads(plan.model_dump_json(by_alias=True)) for plan in plans]
        print_document({"schema": "kopt.run-plans/1", "status": "passed", "plans": documents})
    elif len(plans) == 1:
        print_views(plan_view(plans[0]))
    else:
        print_views(plan_view(plans[0]), _each(plans))


def _each(plans: Sequence[RunPlan]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("kernel", "USD, estimated", "at most"):
        table.add_column(head, justify="left" if head == "kernel" else "right")
    for plan in plans:
        table.add_row(plan.kernel, f"{plan.expected_usd:.2f}", f"{plan.most_usd:,.2f}")
    total = sum(plan.expected_usd for plan in plans)
    most = sum(plan.most_usd for plan in plans)
    table.add_row("all", f"{total:.2f}", f"{most:,.2f}", style="bold")
    return Group(Text("\nA run for each kernel; the first stands above.", style="dim"), table)
