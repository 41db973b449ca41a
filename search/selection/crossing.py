"""Which candidates are merged with each other: proven ones of different families."""

from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import NamedTuple

from kopt.config.search_settings import MAX_CROSSES, SearchSettings
from kopt.search.records.members import Member, Population

from .family_evidence import is_contradicted
from .lineages import is_related
from .ranking import rank, rank_unrefuted, speed_of, speed_words


def find_pairs(
    population: Population, past_slots: Collection[str]
) -> tuple[tuple[Member, Member], ...]:
    """Return the pairs that a round merges, the skeleton (the better one) first.

    A member of the beam with the best of another family: of those in the beam, then of those that
    are not, retired ones included. One pair, or two where there are three families or more; none
    that was merged before, and none of which one comes from the other.
    """
    best = _best_of_families(population)
    most = MAX_CROSSES if len(best) > 2 else 1
    chosen: list[tuple[Member, Member]] = []
    for pair in _pairs(population, best):
        if len(chosen) < most and pair_id(*pair) not in past_slots:
            chosen.append(pair)
    return tuple(chosen)


def pair_id(skeleton: Member, other: Member) -> str:
    """Return the id of the slot that merges both, the same in either order."""
    first, second = sorted((skeleton, other), key=lambda member: member.order)
    return f"cross-{first.label}-{second.label}"


def combine_parents(members: Sequence[Member], settings: SearchSettings) -> tuple[Member, ...]:
    """Return the candidates that are merged after the last round, best first; () without two.

    The leader, then the best of other families, then the next best of families that are there
    already; none that another one comes from.
    """
    ranked = rank_unrefuted(members)
    by_seq = {member.seq: member for member in members}
    chosen = ranked[:1]
    for wants_new in (True, False):
        for member in ranked:
            is_new = all(member.family != other.family for other in chosen)
            related = any(member is other or is_related(member, other, by_seq) for other in chosen)
            if len(chosen) < settings.combine_top_k and is_new is wants_new and not related:
                chosen.append(member)
    return tuple(sorted(chosen, key=ranked.index)) if len(chosen) > 1 else ()


def _best_of_families(population: Population) -> list[Member]:
    """Return the best of each family whose claim holds: those in the beam first."""
    inside = {member.seq for member in population.beam}
    best: dict[str, Member] = {}
    for member in rank_unrefuted(population.members):
        if not is_contradicted(member):
            best.setdefault(member.family, member)
    return sorted(best.values(), key=lambda member: member.seq not in inside)


def _pairs(population: Population, best: Sequence[Member]) -> Iterator[tuple[Member, Member]]:
    by_seq = {member.seq: member for member in population.members}
    places = {member.seq: place for place, member in enumerate(rank_unrefuted(population.members))}
    seen: set[str] = set()
    for member in population.beam:
        for other in best:
            is_useful = member.family != other.family and not is_related(member, other, by_seq)
            if is_useful and pair_id(member, other) not in seen:
                seen.add(pair_id(member, other))
                first, second = sorted((member, other), key=lambda one: places.get(one.seq, inf))
                yield first, second


class MergeVerdict(NamedTuple):
    """What becomes of a merged candidate."""

    is_kept: bool
    why: str
    """With the numbers behind it."""


def judge_merge(
    merged: Member, parents: Sequence[Member], settings: SearchSettings
) -> MergeVerdict:
    """Return whether `merged` is kept; else the search goes on from its best parent.

    One that is kept may still be a little slower than that parent: it is the winner only if it
    ranks first.
    """
    best = rank(parents)[0]
    if merged.quick is None or not merged.passed or merged.is_refuted:
        found = "it was not evaluated" if merged.quick is None else merged.quick.summary
        return MergeVerdict(False, f"reverted to #{best.seq}: {found}")
    speed, of_best = speed_of(merged), speed_of(best)
    if speed is None or of_best is None:
        return MergeVerdict(False, f"reverted to #{best.seq}: no time that counts")
    words = f"{speed_words(merged)} against {speed_words(best)} of #{best.seq}"
    if speed.value < settings.merge_accept * of_best.value:
        return MergeVerdict(False, f"reverted to #{best.seq}: {words}")
    return MergeVerdict(True, words)
