"""How far each strategy family of a run has come: which lead, which get no further candidates.

A retired family keeps its candidates, which may still be parents of merged ones, but has no place
in the beam. A faster candidate of a caller opens it again.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from kopt.config.search_settings import SearchSettings
from kopt.kernels.families import FAMILIES
from kopt.kernels.record import Record
from kopt.search.records.members import Member

from .family_evidence import is_contradicted
from .lineages import Lineage, trace_lineages
from .ranking import Speed, noise_of, rank, speed_of, unrefuted

PLATEAU_ROUNDS = 2
"""A family that had so many rounds without a gain is retired, if it also trails."""

FamilyState = Literal["leading", "open", "plateaued", "spent", "failing"]


class FamilyStanding(Record):
    """One family that was tried."""

    family: str
    state: FamilyState
    """leading: the leader's. plateaued: two rounds of it or more without a gain, and its best
    trails the leader. spent: refining its best has failed too often. failing: none of it has
    passed. open: all others."""
    candidates: int
    passed: int
    best: int | None
    """`seq` of its fastest."""
    relative_speed: float | None
    """Speed of its best over the leader's: measured against the baseline, or estimated on sim."""
    rounds_without_gain: int
    """Rounds that tried it since its last gain."""

    @property
    def is_retired(self) -> bool:
        """Whether it gets no further candidates."""
        return self.state in ("plateaued", "spent")


def family_standings(
    members: Sequence[Member], settings: SearchSettings
) -> tuple[FamilyStanding, ...]:
    """Return every family that was tried, fastest first."""
    alive = unrefuted(members)
    leader = next(iter(rank(alive)), None)
    lineages = trace_lineages(members, settings.min_effect)
    standings: list[FamilyStanding] = []
    for family in dict.fromkeys(member.family for member in members):
        own = [member for member in members if member.family == family]
        ranked = rank(member for member in alive if member.family == family)
        if family in FAMILIES:
            standings.append(_standing((own, ranked), leader, lineages, settings))
    return tuple(sorted(standings, key=lambda one: (-(one.relative_speed or 0.0), one.family)))


def retired_families(members: Sequence[Member], settings: SearchSettings) -> frozenset[str]:
    """Return the families that get no further candidates; never the leader's."""
    standings = family_standings(members, settings)
    return frozenset(one.family for one in standings if one.is_retired)


def untried_families(members: Sequence[Member]) -> tuple[str, ...]:
    """Return the families that no candidate has claimed, or none but in contradiction to its code.

    `other` is none that could be tried.
    """
    tried = {member.family for member in members if not is_contradicted(member)}
    return tuple(family for family in FAMILIES if family not in tried and family != "other")


def _standing(
    family: tuple[Sequence[Member], Sequence[Member]],
    leader: Member | None,
    lineages: Mapping[int, Lineage],
    settings: SearchSettings,
) -> FamilyStanding:
    own, ranked = family
    best = next(iter(ranked), None)
    relative: float | None = None
    if leader is not None and best is not None:
        speed, fastest = speed_of(best), speed_of(leader)
        relative = speed.value / fastest.value if speed and fastest else None
    idle = _rounds_without_gain(own, ranked, settings.min_effect)
    trails = relative is not None and relative < settings.retire_trail
    state: FamilyState = "open"
    if best is None:
        state = "failing"
    elif leader is not None and leader.family == best.family:
        state = "leading"
    elif idle >= PLATEAU_ROUNDS and trails:
        state = "plateaued"
    elif lineages[best.seq].refine_fails >= settings.retire_after:
        state = "spent"
    return FamilyStanding(
        family=own[0].family,
        state=state,
        candidates=len(own),
        passed=sum(member.passed for member in own),
        best=None if best is None else best.seq,
        relative_speed=relative,
        rounds_without_gain=idle,
    )


def _rounds_without_gain(own: Sequence[Member], ranked: Sequence[Member], min_effect: float) -> int:
    """Count the rounds that tried the family since its last gain; what was refuted gained none."""
    best: Speed | None = None
    idle = 0
    for index in sorted({member.round for member in own}):
        fastest = next((member for member in ranked if member.round == index), None)
        speed = None if fastest is None else speed_of(fastest)
        if fastest is None or speed is None:
            idle += 1
            continue
        effect = max(min_effect, noise_of(fastest))
        gained = best is None or (speed.is_above(best) and speed.gain_over(best) > effect)
        idle = 0 if gained else idle + 1
        best = speed if best is None or speed.low > best.low else best
    return idle
