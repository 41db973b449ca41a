"""One round of the search: opened, finished, and what it means for the search as a whole.

A caller's step and `kopt run` do the same rounds; they differ in when they stop (`Judge`).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from kopt.search.knowledge.states.attribution import ablations_wanted
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.members import Proposal
from kopt.search.records.run_state import RoundKind, RoundRow, StopReason
from kopt.search.selection.beam import find_ties
from kopt.search.selection.ranking import rank_unrefuted
from kopt.search.selection.stopping import (
    FinishedRound,
    broken_start,
    limit_of_speed,
    stop_reason,
)
from kopt.search.store.round_table import NewRound

from .agent_rounds import plan_round, reflect, write_branches
from .generated import GENERATED
from .memory_advice import drawn_gains
from .rollouts import ended, plan_rollouts
from .run_context import RunContext

Stop = tuple[StopReason, str]
Judge = Callable[[RunContext], Stop | None]
"""Says whether the search ends after the round that has just been evaluated."""


_AS_FAST_AS_CAN_BE: tuple[StopReason, ...] = ("roofline", "headroom")
"""Reasons for which the leader must be right, not only quick."""


def judge_search(context: RunContext) -> Stop | None:
    """End the search at a limit, or where a further round would not pay.

    A leader that is as fast as can be ends it once the full check has passed, which the end of the
    run would ask for anyway: one that is fast because it is wrong must not.
    """
    stop = _judged(context)
    while stop is not None and stop[0] in _AS_FAST_AS_CAN_BE and _check_leader(context):
        stop = _judged(context)
    return stop


def _check_leader(context: RunContext) -> bool:
    """Put the leader to the full check; False where that was done before, or came to nothing."""
    leader = next(iter(rank_unrefuted(context.members())), None)
    if leader is None or leader.full is not None:
        return False
    context.search.store.queue.add([leader.seq], "full")
    context.evaluations.drain("full")
    return context.members()[leader.seq].full is not None


def _judged(context: RunContext) -> Stop | None:
    rounds = context.search.store.reader.rounds()
    planned = [one.number for one in rounds if one.kind == "agents"]
    number = context.state().round
    finished = FinishedRound(number, starts_families=planned == [number])
    settings = context.state().settings.search
    if context.search.agents is None and (broken := broken_start(context.members())):
        return broken
    if context.follows_trajectories:
        return context.limit_reached() or limit_of_speed(context.members(), settings)
    return context.limit_reached() or stop_reason(context.members(), finished, settings)


def judge_step(context: RunContext) -> Stop | None:
    """End the search at a spent budget alone: a small gain is the caller's to judge."""
    limit = context.limit_reached()
    return limit if limit is not None and limit[0] == "budget" else None


def open_next(context: RunContext, key: str | None = None) -> bool:
    """Open the next round of the search; False, and the search has ended, if there is none.

    With agents it is theirs, else the proposer fills it. `key` is a caller's name for the round.
    """
    state, rounds = context.state(), context.search.store.reader.rounds()
    if not rounds:
        others = context.search.beside_start()
        proposals = (context.search.start, *others[: context.room(len(others) + 1) - 1])
        context.search.store.rounds.open(NewRound(0, "start", proposals))
        return True
    # Only where single steps have closed a round beyond a limit: a round of the loop's own says so.
    stop = context.limit_reached()
    if stop is None:
        try:
            opening = _next_opening(context, key)
            if opening is not None:
                context.search.store.rounds.open(opening)
                return True
            stop = _exhausted(context)
        except BudgetSpent as spent:
            stop = "budget", str(spent)
    context.search.store.rounds.close(state.beam, stop)
    return False


def finish_open(context: RunContext, judge: Judge) -> None:
    """Evaluate what the open round still has, select, and close it."""
    number = context.state().round
    spent = write_branches(context, number)
    if spent is None:
        take_apart(context, number)
    _resolve_ties(context)
    stop = judge(context) if spent is None else ("budget", str(spent))
    context.search.store.rounds.close(context.select(), stop)


def pending_reflection(context: RunContext) -> RoundRow | None:
    """Return the round of agents that has ended and was not thought about yet."""
    last = context.last_round()
    is_due = (
        last is not None
        and last.kind == "agents"
        and last.reflection_sha is None
        and context.search.agents is not None
        and context.state().settings.search.agent == "full"
        and not context.state().round_open
        and context.state().stop_reason != "budget"
    )
    return last if is_due else None


def reflect_on(context: RunContext, finished: RoundRow) -> None:
    """Keep what a round has taught; where that cannot be paid any more the search has ended."""
    state = context.state()
    if context.search.agents is not None:
        try:
            reflect(context, context.search.agents, finished.number)
        except BudgetSpent as spent:
            context.search.store.rounds.close(state.beam, ("budget", str(spent)))


def sweep(context: RunContext) -> tuple[Proposal, ...]:
    """Return what the proposer would try next that is not known yet; () for no idea."""
    room = context.room(context.state().settings.search.sweep_size)
    population = replace(context.population(), gains=partial(drawn_gains, context))
    return context.fresh(context.search.proposer.propose(population, room))[:room]


def _next_opening(context: RunContext, key: str | None) -> NewRound | None:
    if context.search.agents is not None:
        follows = context.follows_trajectories
        opening = plan_rollouts(context) if follows else plan_round(context, context.search.agents)
        return None if opening is None else replace(opening, step=key)
    proposals = sweep(context)
    number = context.state().round + 1
    is_generated = any(one.proposer == GENERATED for one in proposals)
    kind: RoundKind = "generated" if is_generated else "sweep"
    return NewRound(number, kind, proposals, step=key) if proposals else None


def _exhausted(context: RunContext) -> Stop:
    if context.follows_trajectories:
        return "rounds", ended(context)
    return "exhausted", "the proposer has no further candidate"


def _resolve_ties(context: RunContext) -> None:
    """Measure candidates longer that are too close to each other to say which one stays.

    Every candidate at most once, until none is left: so it ends the same, however often it was
    interrupted.
    """
    context.evaluations.drain("tie")
    settings = context.state().settings.search
    while context.spent_time() is None and (ties := find_ties(context.members(), settings)):
        context.search.store.queue.add(ties, "tie")
        context.evaluations.drain("tie")


def take_apart(context: RunContext, number: int) -> None:
    """Evaluate the variants that tell how much each technique of a mixed change has gained.

    They join the open round `number` as candidates; the budget may leave room for none.
    """
    if not context.memory.is_on:
        return
    context.evaluations.drain("quick")
    proposals = context.fresh(_variants(context))
    proposals = proposals[: context.room(len(proposals))]
    if proposals and context.spent_time() is None:
        context.search.store.rounds.add(number, proposals)
        context.evaluations.drain("quick")


def _variants(context: RunContext) -> Iterator[Proposal]:
    members, branches = context.members(), context.search.store.reader.branches()
    parts = context.memory.parts
    for variant in ablations_wanted(members, branches, context.memory.teaching()):
        member = members[variant.seq]
        if parts is not None and variant.tune in parts.choices(member.source):
            yield Proposal(
                source=member.source,
                source_name=member.source_name,
                tune=variant.tune,
                family=member.family,
                proposer="ablation",
                parents=(member.seq,),
            )
