"""What refining has come to: how each attempt ended, and how many in a row have gained nothing.

An attempt is a candidate with all that mend it; the best of them counts, and counts once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from kopt.kernels.status import Status
from kopt.search.records.members import Member

from .ranking import noise_of, rank_unrefuted, speed_of

Outcome = Literal["compile_fail", "wrong", "regression", "stagnant", "improved"]

REGRESSION = 0.001
"""A fraction by which a candidate must be slower than its parent to have regressed."""

_NOT_RUN = (Status.PLAN_ERROR, Status.COMPILE_ERROR, Status.REFUSED, Status.UNSUPPORTED_ON_SIM)


@dataclass(frozen=True)
class Lineage:
    """One candidate as the head of a line of refinements."""

    refine_fails: int
    """Refinements without an improvement in a row, those before it included."""
    replaced_by: int | None
    """`seq` of a refinement of it that is better; it is refined no more, and leaves the beam."""


def outcome_of(child: Member, parent: Member, min_effect: float) -> Outcome:
    """Return how an evaluated candidate compares with its parent.

    A change counts only if it is greater than `min_effect` and than the noise of both, and if the
    intervals leave no doubt of its sign.
    """
    if not child.passed or child.is_refuted:
        return "wrong" if has_run(child) else "compile_fail"
    own, other = speed_of(child), speed_of(parent)
    if own is None:
        return "stagnant"
    if other is None:
        return "improved"
    effect = max(min_effect, noise_of(child), noise_of(parent))
    if own.gain_over(other) > effect and own.is_above(other):
        return "improved"
    if own.gain_over(other) < -REGRESSION and other.is_above(own):
        return "regression"
    return "stagnant"


def has_run(member: Member) -> bool:
    """Return whether `member` was built and executed, with whatever result."""
    return member.quick is not None and member.quick.status not in _NOT_RUN


def attempts_of(members: Sequence[Member]) -> dict[int, tuple[Member, ...]]:
    """Return every attempt by the `seq` of its first candidate: that and all that mend it."""
    first: dict[int, int] = {}
    found: dict[int, tuple[Member, ...]] = {}
    for member in sorted(members, key=lambda one: one.seq):
        mends = member.parents[0] if member.lineage == "fix" else None
        root = member.seq if mends is None else first.get(mends, member.seq)
        first[member.seq] = root
        found[root] = (*found.get(root, ()), member)
    return found


def trace_lineages(members: Sequence[Member], min_effect: float) -> dict[int, Lineage]:
    """Return the lineage of every candidate, by `seq`."""
    by_seq = {member.seq: member for member in members}
    places = {member.seq: place for place, member in enumerate(rank_unrefuted(members))}
    fails = dict.fromkeys(by_seq, 0)
    replaced: dict[int, int] = {}
    attempts = attempts_of(members)
    for root in sorted(attempts, key=lambda seq: by_seq[seq].order):
        attempt, head = attempts[root], by_seq[root]
        parent = by_seq.get(head.parents[0]) if head.parents else None
        result = _result(attempt, places)
        if head.lineage != "refine" or parent is None or result is None:
            continue
        improved = outcome_of(result, parent, min_effect) == "improved"
        fails[parent.seq] = 0 if improved else fails[parent.seq] + 1
        fails |= dict.fromkeys((one.seq for one in attempt), fails[parent.seq])
        if places.get(result.seq, inf) < places.get(parent.seq, inf):
            replaced[parent.seq] = result.seq
    return {seq: Lineage(fails[seq], replaced.get(seq)) for seq in by_seq}


def is_related(one: Member, other: Member, members: Mapping[int, Member]) -> bool:
    """Return whether one of both comes from the other, over any number of generations."""
    return other.seq in _ancestors(one, members) or one.seq in _ancestors(other, members)


def _ancestors(member: Member, members: Mapping[int, Member]) -> set[int]:
    found: set[int] = set()
    waiting = list(member.parents)
    while waiting:
        seq = waiting.pop()
        if seq not in found:
            found.add(seq)
            waiting += members[seq].parents
    return found


def _result(attempt: Sequence[Member], places: Mapping[int, int]) -> Member | None:
    """Return the best candidate of an attempt; None while none of it was evaluated."""
    evaluated = [member for member in attempt if member.quick is not None]
    if not evaluated:
        return None
    return min(evaluated, key=lambda one: places.get(one.seq, inf))
