"""`kopt run --dry-run`: the plan of a run, or of one run for each kernel, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from kopt.config.callbacks import ignore
from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.providers import NAMES
from kopt.kernels.problem_loader import find_kernel
from kopt.search.forecast.run_plan import RunPlan, plan_run
from kopt.search.runs.run import RunRequest
from kopt.server.views.tables import View, grid
from kopt.tools.check.uses import refuse_timed_workload

from .exits import ExitCode
from .opened_device import DeviceChoice, opened_device
from .same_call import same_call
from .session import Session


def print_dry_run(session: Session, requests: Sequence[RunRequest], choice: DeviceChoice) -> int:
    """Print what each run would do on the device that it would have; nothing is begun or asked.

    Raises:
        ToolError: A kernel or a start that is not there, or a kernel that only a GPU runs.
        SetupError: No such device here, or a model whose price is not known.
    """
    # Looked at and not used: nothing waits for a GPU here, or stays.
    with opened_device(choice, replace(session.settings, gpu_idle_s=0.0), ignore) as opened:
        for request in requests:
            problem, workload = find_kernel(request.kernel, session.settings.problems)
            refuse_timed_workload(problem, workload, opened.device)
        facts = None if opened.timer is None else opened.timer.facts
        gpu = opened.device.gpu or gpu_for_arch(opened.arch)
        name, arch = opened.device.name, opened.arch
        on_device = {"device": name, "arch": arch, "gpu": facts}
        asked = [request.model_copy(update=on_device) for request in requests]
        plans = [plan_run(request, session.settings, gpu) for request in asked]
    begins = same_call("begins it", without=("dry_run",))
    if len(plans) == 1:
        session.show(plans[0], plan_view(plans[0]), begins)
        return ExitCode.PASSED
    documents = [plan.model_dump(mode="json", by_alias=True) for plan in plans]
    document = {"schema": "kopt.run-plans/1", "status": "passed", "plans": documents}
    session.show(document, _plans_view(plans), begins)
    return ExitCode.PASSED


def _plans_view(plans: Sequence[RunPlan]) -> View:
    """Yield the first plan in detail, then a line for each kernel."""
    yield from plan_view(plans[0])
    yield Text("\nA run for each kernel; the first stands above.", style="dim")
    table = grid("kernel", "USD, estimated#", "at most#")
    for plan in plans:
        table.add_row(plan.kernel, _usd(plan.expected_usd), _usd(plan.most_usd))
    if all(plan.expected_usd is not None for plan in plans):
        total = sum(plan.expected_usd or 0.0 for plan in plans)
        most = sum(plan.most_usd or 0.0 for plan in plans)
        table.add_row("all", _usd(total), _usd(most), style="bold")
    yield table


def plan_view(plan: RunPlan) -> View:
    """Yield the plan of one run; every figure says whether it is estimated or computed."""
    yield Text(f"\n{plan.kernel}", style="bold")
    yield Text(f"on {plan.device}, compiled for {plan.arch}; nothing was called or written")
    if not plan.asks_models:
        yield Text(
            "No model is asked (--no-models, or no ANTHROPIC_API_KEY and no other --provider): the"
            " rounds are kernels that kopt writes itself, where it knows the function, and sweeps"
            " over tune values; they cost nothing. What agents would cost stands below.",
            style="yellow",
        )
    yield _rounds(plan)
    yield _roles(plan)
    if plan.expected_usd is None or plan.most_usd is None:
        yield Text(f"Cost: unavailable, for {NAMES[plan.provider]} reports none; see the tokens.")
    else:
        yield Text(
            f"Expected: ${plan.expected_usd:.2f} (estimated). At the very most, without a budget:"
            f" ${plan.most_usd:,.2f} (computed: every place taken, every repair tried, every reply"
            " as long and as late as it may be, nothing cached)."
        )
    if plan.provider == "claude-code":
        yield Text("These are list prices: what Claude Code reports, and not what a plan costs.")
    yield Text(f"Budget: {plan.budget}; {plan.allows}.")
    yield Text(f"Estimated with: {'; '.join(plan.assumptions)}.", style="dim")


def _usd(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:,.2f}"


def _rounds(plan: RunPlan) -> Table:
    rows = (
        (str(one.round), one.kind, str(one.expected_candidates), str(one.most_candidates))
        for one in plan.rounds
    )
    return grid("round#", "kind", "candidates, estimated#", "at most, repairs included#", rows=rows)


def _roles(plan: RunPlan) -> Table:
    heads = (
        *("role", "model", "effort", "output, tools#", "calls, estimated#", "at most#"),
        *("tokens, estimated#", "USD, estimated#", "at most#", "price of#"),
    )
    rows = (
        (
            one.role,
            one.model,
            one.effort,
            f"{one.max_output_tokens:,}, {one.tool_calls}",
            f"{one.expected_calls:,}",
            f"{one.most_calls:,}",
            f"{one.expected_tokens:,}",
            _usd(one.expected_usd),
            _usd(one.most_usd),
            one.priced or "-",
        )
        for one in plan.roles
    )
    return grid(*heads, rows=rows)
