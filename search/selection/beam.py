"""Which candidates survive a round, and which of them have to be measured again to say so.

Nothing here evaluates or proposes.
"""

from collections.abc import Iterable, Sequence

from kopt.config.search_settings import SearchSettings
from kopt.search.records.members import Member

from .family_evidence import is_contradicted
from .family_standing import retired_families
from .lineages import trace_lineages
from .ranking import rank_unrefuted, speed_of


def select_beam(members: Iterable[Member], settings: SearchSettings) -> tuple[Member, ...]:
    """Return the members that survive, best first, at most `settings.beam.width`.

    The leader always does. In a diverse beam the best of each family follows, as far as the
    machine code bears its claim out; places that are left go to the next best, at most half the
    beam (rounded up) per family, unless there is but one family.
    """
    candidates = eligible(tuple(members), settings)
    if settings.diversity_mode == "fastest":
        kept = _fastest(candidates, settings)
    else:
        kept = _diverse(candidates, settings)
    places = {member.seq: place for place, member in enumerate(candidates)}
    return tuple(sorted(kept, key=lambda member: places[member.seq]))


def eligible(members: Sequence[Member], settings: SearchSettings) -> list[Member]:
    """Return who may have a place, best first.

    Who was refuted by a later check may not, nor who is the same program; nor who was replaced by
    a better refinement; nor who is of a retired family.
    """
    lineages = trace_lineages(members, settings.min_effect)
    retired = retired_families(members, settings)
    return [
        member
        for member in rank_unrefuted(members)
        if lineages[member.seq].replaced_by is None and member.family not in retired
    ]


def find_ties(members: Sequence[Member], settings: SearchSettings) -> tuple[int, ...]:
    """Return who should be measured again, with more pairs, before the beam is selected.

    Where the intervals of two candidates overlap and it matters: one leads and the other is in the
    beam, or one has a place that the other would take. Nobody is measured again twice, and nobody
    on sim, whose estimates are the same each time.
    """
    kept = select_beam(members, settings)
    inside = {member.seq for member in kept}
    outside = [one for one in eligible(members, settings) if one.seq not in inside]
    pairs = [(kept[0], other) for other in kept[1:]]
    for family in dict.fromkeys(member.family for member in outside):
        contender = next(member for member in outside if member.family == family)
        rivals = [member for member in kept if member.family == family]
        pairs += [(last, contender) for last in (*rivals[-1:], *kept[-1:])]
    undecided = {one.seq for pair in pairs if _overlap(*pair) for one in pair}
    by_seq = {member.seq: member for member in members if _is_measured(member)}
    open_ones = [by_seq[seq] for seq in undecided & by_seq.keys() if by_seq[seq].tie is None]
    return tuple(member.seq for member in sorted(open_ones, key=lambda one: one.order))


def _is_measured(member: Member) -> bool:
    return member.timing is not None and member.timing.speedup_interval is not None


def _fastest(candidates: Sequence[Member], settings: SearchSettings) -> list[Member]:
    width = settings.beam.width
    kept = list(candidates[:width])
    families = {member.family for member in kept}
    if settings.population_crossover and len(families) == 1 < width:
        others = [member for member in candidates[width:] if member.family not in families]
        kept[width - 1 :] = others[:1] or kept[width - 1 :]
    return kept


def _diverse(candidates: Sequence[Member], settings: SearchSettings) -> list[Member]:
    width, share = settings.beam.width, settings.family_share
    kept = list(candidates[:1])
    for member in candidates[1:]:
        is_new = all(member.family != other.family for other in kept)
        if len(kept) < width and is_new and not is_contradicted(member):
            kept.append(member)
    if len({member.family for member in candidates}) == 1:
        share = width
    for member in candidates:
        if len(kept) >= width:
            break
        of_family = [other for other in kept if other.family == member.family]
        if len(of_family) < share and all(member is not other for other in of_family):
            kept.append(member)
    return kept


def _overlap(one: Member, other: Member) -> bool:
    """Return whether more pairs could tell which of both is the faster one."""
    first, second = speed_of(one), speed_of(other)
    if first is None or second is None or not first.width:
        return False
    return not first.is_above(second) and not second.is_above(first)
