"""What follows a search: the best are merged, the leader is swept, the winner proven and promoted.

Each part is a round of its own or a document of the winner, so that it is done once, however often
the run is interrupted. Where a budget is spent only the proof remains.
"""

from collections.abc import Sequence
from dataclasses import replace

from kopt.search.agents.plans import Hypothesis
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchPlan, EventKind
from kopt.search.selection.crossing import combine_parents, judge_merge
from kopt.search.selection.ranking import rank, rank_unrefuted, speed_of
from kopt.search.selection.stopping import copy_reached
from kopt.search.store.round_table import NewRound

from .final_check import run_final_checks
from .run_context import RunContext
from .search_round import Stop, finish_open

CLOSING = ("combine", "tune")
"""Kinds of the rounds that follow a search."""


def conclude(context: RunContext) -> None:
    """Do the next thing that follows a search: open a round, or end the run."""
    opening, state = None, context.state()
    nothing_left = copy_reached(context.members(), state.settings.search)
    is_spent = state.stop_reason == "budget" or not context.room(1) or context.spent_time()
    if not is_spent and nothing_left is None:
        opening = _merge(context) or _sweep_of_leader(context)
    if opening is None:
        run_final_checks(context)
    else:
        context.search.store.rounds.open(opening)


def finish_closing(context: RunContext) -> None:
    """Finish the open round that follows a search, which stays ended for the reason it had."""
    state, last = context.state(), context.last_round()
    over: Stop = "exhausted", "the search had ended when its budget was spent"
    if state.stop_reason is not None:
        over = state.stop_reason, state.stop_detail or ""
    finish_open(context, lambda context: _spent(context) or over)
    if last is not None and last.kind == "combine":
        _tell_of_merge(context, last.number)


def _spent(context: RunContext) -> Stop | None:
    spent = context.spent_time()
    return None if spent is None else ("budget", spent)


def _merge(context: RunContext) -> NewRound | None:
    """Return the round in which the combiner merges the best, once after a search."""
    state, last = context.state(), context.last_round()
    if context.search.agents is None or last is None or last.kind in CLOSING:
        return None
    parents = combine_parents(context.members(), state.settings.search)
    if not parents:
        return None
    labels = " and ".join(parent.label for parent in parents)
    hypothesis = Hypothesis(
        slot="combine",
        family=parents[0].family,
        name=f"merge of {labels}",
        hypothesis=f"One kernel with what makes each of {labels} fast.",
        mechanism="Their gains come from different parts of the kernel.",
        expected_gain=0.0,
        risk="They may use the same registers, shared memory or threads.",
        evidence="; ".join(f"{parent.label}: {parent.family}" for parent in parents),
        parents=tuple(parent.seq for parent in parents),
    )
    branch = BranchPlan(
        slot="combine",
        lineage="combine",
        parents=hypothesis.parents,
        hypothesis=hypothesis.model_dump(mode="json"),
    )
    return NewRound(state.round + 1, "combine", branches=(branch,))


def _tell_of_merge(context: RunContext, number: int) -> None:
    (branch,) = context.search.store.reader.branches(number)
    if branch.candidate is None:
        return
    members = context.members()
    parents = [members[seq] for seq in branch.parents]
    settings = context.state().settings.search
    verdict = judge_merge(members[branch.candidate], parents, settings)
    context.search.store.log.tell(
        EventKind.COMBINED, candidate=branch.candidate, kept=verdict.is_kept, why=verdict.why
    )


def _sweep_of_leader(context: RunContext) -> NewRound | None:
    """Return a round that sweeps the leader's `tune` values; None once that stopped paying.

    A search without agents has done so already.
    """
    rounds = context.search.store.reader.rounds()
    if all(one.kind in ("start", "generated", "sweep") for one in rounds):
        return None
    members, settings = context.members(), context.state().settings
    leader = next(iter(rank_unrefuted(members)), None)
    if leader is None or not _is_worth_a_sweep(leader, members, settings.search.min_effect):
        return None
    population = replace(context.population(), beam=(leader,))
    room = context.room(settings.search.sweep_size)
    proposals = context.fresh(context.search.proposer.propose(population, room))
    return NewRound(population.round, "tune", proposals[:room]) if proposals else None


def _is_worth_a_sweep(leader: Member, members: Sequence[Member], min_effect: float) -> bool:
    """Return whether the leader's source was not swept yet, or still gained when it was last."""
    swept = [m for m in members if m.source_sha == leader.source_sha and m.proposer == "sweep"]
    if not swept:
        return True
    last = max(member.round for member in swept)
    earlier = rank(m for m in members if m.source_sha == leader.source_sha and m.round < last)
    if leader.round < last or not earlier:
        return leader.round == last
    speed, before = speed_of(leader), speed_of(earlier[0])
    return speed is not None and before is not None and speed.gain_over(before) > min_effect
