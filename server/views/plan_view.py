"""What a run would do, as text: rounds, who is asked, what it costs and how that was computed."""

from rich.table import Table
from rich.text import Text

from kopt.search.forecast.run_plan import RunPlan

from .tables import View, grid


def plan_view(plan: RunPlan) -> View:
    """Yield the plan of one run; every figure says whether it is estimated or computed."""
    yield Text(f"\n{plan.kernel}", style="bold")
    yield Text(f"on {plan.device}, compiled for {plan.arch}; nothing was called or written")
    if not plan.asks_models:
        yield Text(
            "There is no key (ANTHROPIC_API_KEY): the rounds are sweeps over the kernel's tune"
            " values and cost nothing. What agents would cost stands below.",
            style="yellow",
        )
    yield _rounds(plan)
    yield _roles(plan)
    yield Text(
        f"Expected: ${plan.expected_usd:.2f} (estimated). At the very most, without a budget:"
        f" ${plan.most_usd:,.2f} (computed: every place taken, every repair tried, every reply as"
        " long and as late as it may be, nothing cached)."
    )
    yield Text(f"Budget: {plan.budget}; {plan.allows}.")
    yield Text(f"Estimated with: {'; '.join(plan.assumptions)}.", style="dim")


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
            f"{one.expected_usd:.2f}",
            f"{one.most_usd:,.2f}",
            one.priced,
        )
        for one in plan.roles
    )
    return grid(*heads, rows=rows)
