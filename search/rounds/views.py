"""What the agents are shown, made from the store: the same store gives the same views."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kopt.search.agents.plans import Hypothesis, Plan, Reflection
from kopt.search.agents.slots import PopulationView, Slot
from kopt.search.agents.views import Advice, BranchTask, Documents, FailedBranch, RoundView
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow
from kopt.search.selection.family_standing import (
    family_standings,
    retired_families,
    untried_families,
)
from kopt.search.store.run_reader import RunReader

from .memory_advice import ADVISED, Request, advice_on, advise
from .run_context import RunContext


def population_view(context: RunContext) -> PopulationView:
    """Return what the slots of the next round are decided by."""
    branches = context.search.store.reader.branches()
    rounds = context.search.store.reader.rounds()
    return PopulationView(
        population=context.population(),
        is_first=all(one.kind != "agents" for one in rounds),
        past_slots=frozenset(branch.slot for branch in branches),
        reserve=reserve(context.search.store.reader),
    )


def reserve(reader: RunReader) -> tuple[Hypothesis, ...]:
    """Return the surplus of all plans that no branch has followed, in the order planned."""
    used = {_idea(_hypothesis(branch)) for branch in reader.branches()}
    plans = [one.plan_sha for one in reader.rounds() if one.plan_sha is not None]
    planned = [hypothesis for sha in plans for hypothesis in reader.read(sha, Plan).reserve]
    return tuple(one for one in planned if _idea(one) not in used)


def planning_view(context: RunContext, slots: tuple[Slot, ...], reserve_wanted: int) -> RoundView:
    """Return what the planner of the next round is shown."""
    number = context.state().round + 1
    view = _round_view(context, number, slots, reserve_wanted)
    return replace(view, advice=_advice_on_leader(context, number))


def reflecting_view(context: RunContext, number: int) -> RoundView:
    """Return what the reflector of a round that has ended is shown."""
    return _round_view(context, number, (), 0)


def branch_task(context: RunContext, branch: BranchRow) -> BranchTask:
    """Return what a branch is to write."""
    members = context.members()
    hypothesis = _hypothesis(branch)
    seqs = list(dict.fromkeys((*branch.parents, *hypothesis.parents)))
    parents = tuple(members[seq] for seq in seqs)
    return BranchTask(
        id=branch.id,
        lineage=branch.lineage,
        hypothesis=hypothesis,
        parents=parents,
        documents=documents_of(context, parents, profiled=parents),
        lessons=_lessons(context.search.store.reader, members, branch.round),
        advice=advice_on(context, parents[0], hypothesis.techniques)
        if context.memory.is_on and parents
        else None,
    )


def documents_of(
    context: RunContext, members: Iterable[Member], profiled: Iterable[Member]
) -> Documents:
    """Return the check of each of `members` that failed, the profile of each of `profiled`."""
    reader = context.search.store.reader
    checks = {one.seq: check for one in members if (check := reader.failed_check(one)) is not None}
    profiles = {
        one.seq: profile
        for one in profiled
        if one.passed and (profile := context.search.profile(one)) is not None
    }
    return Documents(profiles=profiles, checks=checks)


def _advice_on_leader(context: RunContext, number: int) -> tuple[Advice, ...]:
    """Return the leader's state and what the knowledge base would try on it."""
    state, members = context.state(), context.members()
    if not context.memory.is_on or not state.beam:
        return ()
    leader = members[state.beam[0]]
    given_up = retired_families(members, state.settings.search)
    return (advise(context, leader, Request(ADVISED, f"r{number}/{leader.label}", (), given_up)),)


def _round_view(
    context: RunContext, number: int, slots: tuple[Slot, ...], reserve_wanted: int
) -> RoundView:
    reader, state, members = context.search.store.reader, context.state(), context.members()
    return RoundView(
        round=number,
        members=members,
        beam=state.beam,
        standings=family_standings(members, state.settings.search),
        untried=untried_families(members),
        slots=slots,
        reserve_wanted=reserve_wanted,
        documents=documents_of(context, members, [members[seq] for seq in state.beam[:1]]),
        reflections=_reflections(reader, before=number),
        hypotheses={branch.id: _hypothesis(branch) for branch in reader.branches()},
        failed_branches=tuple(
            FailedBranch(_hypothesis(branch), branch.why or "")
            for branch in reader.branches()
            if branch.state == "failed" and branch.candidate is None
        ),
        reserve=reserve(reader),
    )


def _reflections(reader: RunReader, before: int) -> tuple[Reflection, ...]:
    return tuple(
        reader.read(one.reflection_sha, Reflection)
        for one in reader.rounds()
        if one.reflection_sha is not None and one.number < before
    )


def _lessons(reader: RunReader, members: Sequence[Member], before: int) -> tuple[str, ...]:
    lines: list[str] = []
    for reflection in _reflections(reader, before):
        lines += [
            f"{members[lesson.candidate].label}: {lesson.text}" for lesson in reflection.lessons
        ]
        lines += [f"avoid: {text}" for text in reflection.avoid]
    return tuple(lines)


def _hypothesis(branch: BranchRow) -> Hypothesis:
    return Hypothesis.model_validate(branch.hypothesis)


def _idea(hypothesis: Hypothesis) -> tuple[str, str, str]:
    """Return what makes a hypothesis the one that it is, whatever slot it fills."""
    return hypothesis.family, hypothesis.name, hypothesis.hypothesis
