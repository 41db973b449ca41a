"""Which candidates survive a round, and when a search has stopped paying.

Order is by the cost of the quick evaluation: on a GPU the paired speedup against the run's
baseline, on `sim` the estimated time. Nothing here evaluates or proposes.
"""

from collections.abc import Iterable, Sequence
from math import ceil, inf

from .proposer import Member


def rank(members: Iterable[Member]) -> list[Member]:
    """Return the members that passed, fastest first, the same program once.

    Ties go to fewer registers, then the shorter source, then the earlier candidate, which also is
    the one that stands for all of the same binary and launches. A member that passed without a
    cost comes last.
    """
    ranked: list[Member] = []
    seen: set[str] = set()
    for member in sorted((m for m in members if m.passed), key=_order):
        equivalence = member.quick.equivalence if member.quick else None
        if equivalence is None or equivalence not in seen:
            ranked.append(member)
        if equivalence is not None:
            seen.add(equivalence)
    return ranked


def select_beam(members: Iterable[Member], width: int) -> tuple[Member, ...]:
    """Return at most `width` members, best first: the leader, then the best of each family.

    Places that families leave free go to the next best, at most half the width (rounded up) per
    family, so that one idea does not fill the beam; where all candidates are of one family there
    is nothing to protect and the best are taken. Who failed a full check stays out.
    """
    ranked = rank(member for member in members if not member.is_refuted)
    kept: list[Member] = []
    for member in ranked:
        if len(kept) < width and all(member.family != other.family for other in kept):
            kept.append(member)
    only_family = len(kept) == 1
    for member in ranked:
        if len(kept) >= width:
            break
        of_family = sum(other.family == member.family for other in kept)
        if member not in kept and (only_family or of_family < ceil(width / 2)):
            kept.append(member)
    return tuple(sorted(kept, key=ranked.index))


def round_gain(before: Sequence[Member], after: Sequence[Member]) -> float:
    """Return by which fraction a round made the best faster: 0.03 for 3 %.

    The best of each family counts for itself, so that a family that is still getting better keeps
    the search going while the leader stands still. 0.0 for no gain; infinite for a first cost.
    """
    best_before = _best_by_family(before)
    best_after = _best_by_family(after)
    if not best_before:
        return inf if best_after else 0.0
    gains = [best_before[family] / best_after[family] - 1.0 for family in best_before]
    gains.append(min(best_before.values()) / min(best_after.values()) - 1.0)
    return max(0.0, *gains)


def _best_by_family(members: Sequence[Member]) -> dict[str, float]:
    best: dict[str, float] = {}
    for member in members:
        cost = member.cost
        if member.passed and cost is not None:
            best[member.family] = min(cost, best.get(member.family, inf))
    return best


def _order(member: Member) -> tuple[float, float, int, int]:
    registers = member.quick.registers if member.quick else None
    return (
        inf if member.cost is None else member.cost,
        inf if registers is None else registers,
        len(member.source),
        member.seq,
    )
