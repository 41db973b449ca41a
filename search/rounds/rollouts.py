"""A round of trajectories: the next step of each that is under way, as techniques drawn for it.

No planner: the knowledge base draws, the coder lowers what was drawn (`agent_rounds.py`), and
what came of it decides from which program the trajectory goes on.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import expm1

from kopt.kernels.families import FAMILY_CHANGES
from kopt.search.agents.plans import Draw, Hypothesis, Plan
from kopt.search.agents.rule_plans import free_hypothesis
from kopt.search.agents.views import Advice
from kopt.search.records.run_state import BranchPlan
from kopt.search.selection.trajectories import Trajectory, slot_id, trace_trajectories
from kopt.search.store.round_table import NewRound

from .memory_advice import Request, advise, draws_of
from .run_context import RunContext


@dataclass(frozen=True)
class _Step:
    """One slot of the round."""

    hypothesis: Hypothesis
    draw: Draw | None
    """The draw behind it; None where the model decides for itself."""


def plan_rollouts(context: RunContext) -> NewRound | None:
    """Return the next steps of the trajectories under way; None where all have ended.

    At most `at_once` are under way: the others begin when one of them has ended, and draw from
    what it has taught.
    """
    number, settings = context.state().round + 1, context.state().settings.search.maic_rl
    steps: list[_Step] = []
    under_way = 0
    drawn: dict[int, list[str]] = defaultdict(list)
    for trajectory in trajectories(context):
        if under_way < settings.at_once and not trajectory.is_finished:
            found = tuple(_next_steps(context, trajectory, drawn[trajectory.program]))
            under_way += bool(found)
            steps += found
    steps = steps[: context.room(len(steps))]
    if not steps:
        return None
    hypotheses = tuple(one.hypothesis for one in steps)
    plan = Plan(
        hypotheses=hypotheses, draws=tuple(one.draw for one in steps if one.draw is not None)
    )
    return NewRound(
        number=number,
        kind="rollouts",
        branches=tuple(map(_branch, hypotheses)),
        plan=plan.model_dump_json().encode(),
    )


def trajectories(context: RunContext, before: int | None = None) -> tuple[Trajectory, ...]:
    """Return the trajectories of the run; `before`: as they stood before the round of this number.

    The steps of an open round are not among them.
    """
    state, reader = context.state(), context.search.store.reader
    last = state.round if state.round_open else state.round + 1
    end = last if before is None else min(before, last)
    branches = [one for one in reader.branches() if one.round < end]
    techniques = context.memory.base().techniques.values()
    preparing = frozenset(one.id for one in techniques if one.prepares)
    return trace_trajectories(context.members(), branches, state.settings.search, preparing)


def ended(context: RunContext) -> str:
    """Return in words that no trajectory goes on."""
    found = trajectories(context)
    finished = sum(one.is_finished for one in found)
    steps = sum(one.steps for one in found)
    stuck = "" if finished == len(found) else f", {len(found) - finished} for want of techniques"
    return f"all {len(found)} trajectories have ended{stuck}, after {steps} steps"


def _next_steps(context: RunContext, trajectory: Trajectory, drawn: list[str]) -> Iterator[_Step]:
    """Yield the next step of a trajectory; `drawn`: what others of the round do to its program."""
    settings = context.state().settings.search
    member = context.members()[trajectory.program]
    step, count = trajectory.steps + 1, settings.maic_rl.actions
    slots = [slot_id(trajectory.number, step, action) for action in range(1, count + 1)]
    if settings.agent == "minimal":
        parents = (member.seq,)
        yield from (_Step(free_hypothesis(slot, parents, member.family), None) for slot in slots)
        return
    name = f"r{context.state().round + 1}/t{trajectory.number}"
    advice = advise(context, member, Request(count, name, tuple(drawn)))
    drawn += [one.technique.id for one in advice.drawn]
    for place, draw in enumerate(draws_of(advice, slots)):
        yield _Step(_hypothesis(draw, advice, place), draw)


def _hypothesis(draw: Draw, advice: Advice, place: int) -> Hypothesis:
    technique, prediction = advice.drawn[place].technique, draw.prediction
    return Hypothesis(
        slot=draw.slot,
        family=technique.family,
        name=technique.id.replace("_", " "),
        hypothesis=technique.description,
        mechanism=FAMILY_CHANGES[technique.family],
        expected_gain=expm1(prediction.gain),
        risk="",
        evidence=draw.why,
        parents=(draw.candidate,),
        techniques=(technique.id,),
        state=draw.state,
        predicted_gain=prediction.gain,
        predicted_interval=prediction.interval,
    )


def _branch(hypothesis: Hypothesis) -> BranchPlan:
    return BranchPlan(
        slot=hypothesis.slot,
        lineage="expand",
        parents=hypothesis.parents,
        hypothesis=hypothesis.model_dump(mode="json"),
    )
