"""A round of agents: planned, then written branch by branch while its candidates are evaluated."""

from collections.abc import Sequence

from kopt.config.errors import SetupError
from kopt.search.agents.plans import Hypothesis, Plan
from kopt.search.agents.slots import Slot, plan_slots, reserve_wanted
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.run_state import BranchPlan
from kopt.search.store.round_table import NewRound
from kopt.search.store.run_reader import RunReader

from .agents import Agents
from .branch import Branch
from .main_thread import WorkerThreads
from .memory_advice import draws_of, expected
from .run_context import RunContext
from .views import branch_task, planning_view, population_view, reflecting_view


def plan_round(context: RunContext, agents: Agents) -> NewRound | None:
    """Return the next round as the planner fills it; None where there is nothing left to try.

    Raises:
        BudgetSpent: The planner cannot be paid any more, or the time is spent.
    """
    view, settings = population_view(context), context.state().settings.search
    slots = plan_slots(view, settings)
    slots = slots[: context.room(len(slots))]
    if not slots:
        return None
    plan = _plan(context, agents, slots, reserve_wanted(view, settings))
    planned = {hypothesis.slot: hypothesis for hypothesis in plan.hypotheses}
    known = _known(context.search.store.reader, slots, view.reserve)
    filled = [(slot, expected(context, (planned | known)[slot.id])) for slot in slots]
    return NewRound(
        number=view.population.round,
        kind="agents",
        branches=tuple(_branch(slot, hypothesis) for slot, hypothesis in filled),
        plan=plan.model_dump_json().encode(),
        reserve=len(plan.reserve),
    )


def write_branches(context: RunContext, number: int) -> BudgetSpent | None:
    """Have every open branch of a round written, each in a thread, and evaluate what they write.

    Returns why some are still open, if a budget is spent.

    Raises:
        SetupError: There are open branches and no model to write them.
        CallFailed: No model can be asked now, or with this key.
    """
    rows = [row for row in context.search.store.reader.branches(number) if row.state == "open"]
    workers = WorkerThreads(context.search.main_thread)
    if rows:
        agents = _required(context, number)
        roles = agents.roles()
        for row in rows:
            branch = Branch(context, roles, agents.shape, branch_task(context, row))
            workers.start(row.id, branch.run)
    context.evaluations.drain("quick", workers)
    return workers.spent


def reflect(context: RunContext, agents: Agents, number: int) -> None:
    """Ask what a round has taught and keep the answer.

    Raises:
        BudgetSpent: The reflector cannot be paid any more, or the time is spent.
    """
    roles, view = agents.roles(), reflecting_view(context, number)
    reflection = context.in_worker(f"r{number}/reflect", lambda: roles.reflect(view))
    context.search.store.rounds.keep_reflection(number, reflection.model_dump_json().encode())


def _required(context: RunContext, number: int) -> Agents:
    if context.search.agents is None:
        raise SetupError(
            f"round {number} was begun with a model and not all of it is written yet: finish it"
            " with kopt run --resume, by ANTHROPIC_API_KEY, --provider or --replay FILE"
        )
    return context.search.agents


def _plan(context: RunContext, agents: Agents, slots: Sequence[Slot], wanted: int) -> Plan:
    """Return the hypotheses for those slots that have none yet."""
    asked = tuple(slot for slot in slots if slot.kind not in ("reserve", "retry"))
    if not asked:
        return Plan(hypotheses=())
    roles, view = agents.roles(), planning_view(context, asked, wanted)
    plan = context.in_worker(f"r{view.round}/plan", lambda: roles.plan(view))
    draws = tuple(draw for advice in view.advice for draw in draws_of(advice))
    return plan.model_copy(update={"draws": draws})


def _known(
    reader: RunReader, slots: Sequence[Slot], reserve: Sequence[Hypothesis]
) -> dict[str, Hypothesis]:
    """Return the hypotheses of the slots that need no planning, by slot."""
    found: dict[str, Hypothesis] = {}
    for slot in slots:
        if slot.kind == "reserve":
            found[slot.id] = reserve[int(slot.id.removeprefix("reserve-"))]
        elif slot.kind == "retry":
            failed = reader.members()[slot.parents[0]]
            (branch,) = (row for row in reader.branches() if row.id == failed.branch)
            found[slot.id] = Hypothesis.model_validate(branch.hypothesis)
    return found


def _branch(slot: Slot, hypothesis: Hypothesis) -> BranchPlan:
    filled = hypothesis.model_copy(update={"slot": slot.id})
    return BranchPlan(
        slot=slot.id,
        lineage=slot.lineage,
        parents=slot.parents,
        hypothesis=filled.model_dump(mode="json"),
    )
