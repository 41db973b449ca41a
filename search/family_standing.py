"""How far each strategy family of a run has come: which lead, which have stopped paying.

Nothing is forbidden by it: the beam keeps a place for every family that deserves one, and whoever
proposes candidates decides.
"""

from collections.abc import Sequence
from typing import Literal

from kopt.kernels.families import FAMILIES
from kopt.kernels.record import Record

from .beam import rank
from .proposer import Member

PLATEAU_ROUNDS = 2
"""A family that had so many rounds without a gain has stopped paying, if it also trails."""
TRAILS_BELOW = 0.90
"""Best speed of a family over the leader's: below it the family trails."""

FamilyState = Literal["leading", "open", "plateaued", "failing"]


class FamilyStanding(Record):
    """One family that was tried."""

    family: str
    state: FamilyState
    """leading: the leader's. plateaued: two rounds of it or more without a gain, and its best
    trails the leader by over 10 %. failing: none of it has passed. open: all others."""
    candidates: int
    passed: int
    best: int | None
    """`seq` of its fastest."""
    relative_speed: float | None
    """Speed of its best over the leader's: measured against the baseline, or estimated on sim."""
    rounds_without_gain: int
    """Of the rounds that tried it, since its last gain."""


def family_standings(
    members: Sequence[Member], min_improvement: float
) -> tuple[FamilyStanding, ...]:
    """Return every family that was tried, fastest first.

    Args:
        members: All candidates of the run.
        min_improvement: What counts as a gain: 0.03 for 3 %.
    """
    leader = next(iter(rank(members)), None)
    families = dict.fromkeys(member.family for member in members)
    standings = [
        _standing(family, members, leader, min_improvement)
        for family in families
        if family in FAMILIES
    ]
    return tuple(sorted(standings, key=lambda one: -(one.relative_speed or 0.0)))


def untried_families(members: Sequence[Member]) -> tuple[str, ...]:
    """Return the families that no candidate of the run has claimed."""
    tried = {member.family for member in members}
    return tuple(family for family in FAMILIES if family not in tried and family != "other")


def _standing(
    family: str, members: Sequence[Member], leader: Member | None, min_improvement: float
) -> FamilyStanding:
    own = [member for member in members if member.family == family]
    best = next(iter(rank(own)), None)
    speed = None
    if leader is not None and best is not None and leader.cost and best.cost:
        speed = leader.cost / best.cost
    idle = _rounds_without_gain(own, min_improvement)
    state: FamilyState = "open"
    if best is None:
        state = "failing"
    elif leader is not None and leader.family == family:
        state = "leading"
    elif idle >= PLATEAU_ROUNDS and speed is not None and speed < TRAILS_BELOW:
        state = "plateaued"
    return FamilyStanding(
        family=family,
        state=state,
        candidates=len(own),
        passed=sum(member.passed for member in own),
        best=None if best is None else best.seq,
        relative_speed=speed,
        rounds_without_gain=idle,
    )


def _rounds_without_gain(own: Sequence[Member], min_improvement: float) -> int:
    best: float | None = None
    idle = 0
    for index in sorted({member.round for member in own}):
        costs = [member.cost for member in own if member.round == index and member.cost]
        fastest = min(costs, default=None)
        gained = fastest is not None and (best is None or best / fastest - 1.0 >= min_improvement)
        idle = 0 if gained else idle + 1
        best = min((cost for cost in (best, fastest) if cost is not None), default=None)
    return idle
