"""When a search has stopped paying: by what the intervals confirm, not by lucky measurements.

The limits of a run, its rounds and its budget, are not judged here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from kopt.config.search_settings import SearchSettings
from kopt.kernels.status import Status
from kopt.search.records.evaluation import FLOOR
from kopt.search.records.members import Member
from kopt.search.records.run_state import StopReason

from .family_standing import retired_families
from .headroom import expected_gain, headroom_of
from .ranking import noise_of, rank, rank_unrefuted, speed_of, unrefuted


@dataclass(frozen=True)
class FinishedRound:
    """The round after which the search may stop."""

    number: int
    starts_families: bool = False
    """Whether it was the first that was planned: it makes what later ones are judged by."""


@dataclass(frozen=True)
class Gain:
    """What a round has improved."""

    fraction: float
    """0.03 for 3 %; 0.0 for nothing; infinite where nothing had passed before."""
    is_confirmed: bool
    """Whether the intervals leave no doubt that it is one."""


def stop_reason(
    members: Sequence[Member], finished: FinishedRound, settings: SearchSettings
) -> tuple[StopReason, str] | None:
    """Return why the search stops after a round, and the words for it; None: it goes on.

    It stops where the leader is as fast as can be, where a plain copy of as many bytes or the gains
    of the round leave too little to hope for, and after a round that has improved neither the best
    nor any open family enough. A round that may have done so, within the noise, does not end
    a search whose leader is of this round or the one before.
    """
    leader = next(iter(rank_unrefuted(members)), None)
    if finished.number == 0:
        return None
    if leader is None:
        if finished.starts_families:
            return None  # failed hypotheses and the reserve get their turn
        return "exhausted", f"none of the first {len(members)} candidates passed"
    limit = limit_of_speed(members, settings) or _too_little_expected(members, finished, settings)
    if limit is not None:
        return limit
    gain = round_gain(members, finished.number, settings)
    least = settings.early_stop_min_improvement
    is_enough = gain.fraction >= least
    is_fresh = leader.round >= finished.number - 1
    if finished.starts_families or (is_enough and (gain.is_confirmed or is_fresh)):
        return None
    return "early_stop", (
        f"round {finished.number} improved the best by {gain.fraction:.1%} in"
        f" {_provenance(leader)} time, "
        + ("which its interval does not confirm" if is_enough else f"less than {least:.0%}")
    )


def broken_start(members: Sequence[Member]) -> tuple[StopReason, str] | None:
    """Return in words that the start is broken whatever its `tune` values are; None if it is not.

    Only a launch that does not fit may be fixed by other values.
    """
    start = next(iter(members), None)
    quick = None if start is None or len(members) > 1 else start.quick
    if quick is None or quick.status in (Status.PASSED, Status.PLAN_ERROR, Status.LAUNCH_ERROR):
        return None
    return "exhausted", f"the starting kernel is {quick.status}, which no tune value fixes"


def limit_of_speed(
    members: Sequence[Member], settings: SearchSettings
) -> tuple[StopReason, str] | None:
    """Return in words that too little is left to gain; None where more is, or that is unknown.

    Left to a plain copy of as many bytes that was measured on the GPU, or to the computed roofline.
    """
    leader = next(iter(rank_unrefuted(members)), None)
    words = None if leader is None else _near_roofline(leader, settings)
    return copy_reached(members, settings) if words is None else ("roofline", words)


def copy_reached(
    members: Sequence[Member], settings: SearchSettings
) -> tuple[StopReason, str] | None:
    """Return in words that a plain copy leaves too little to gain; None where more, or unknown."""
    room, least = headroom_of(members), settings.early_stop_min_improvement
    if settings.headroom_stop == "off" or room is None or room.left >= least:
        return None
    return "headroom", f"{room.words}, which leaves less than {least:.0%}"


def _too_little_expected(
    members: Sequence[Member], finished: FinishedRound, settings: SearchSettings
) -> tuple[StopReason, str] | None:
    """Return in words that another such round is expected to gain too little; None: go on.

    Only where a copy's time is known, and not after the first planned round.
    """
    room, least = headroom_of(members), settings.early_stop_min_improvement
    if settings.headroom_stop == "off" or room is None or finished.starts_families:
        return None
    expected = min(room.left, expected_gain(members, finished.number))
    if expected >= least:
        return None
    return "headroom", (
        f"{room.words}; from another round like round {finished.number} {expected:.1%} is expected,"
        f" less than {least:.0%}"
    )


def round_gain(members: Sequence[Member], last_round: int, settings: SearchSettings) -> Gain:
    """Return the greatest gain of `last_round`: of the best of all, or of a family that is open.

    A confirmed one counts before a greater one that is not. The first success of a family is no
    gain of that family.
    """
    alive = unrefuted(members)
    before = [member for member in alive if member.round < last_round and member.passed]
    open_families = {member.family for member in before} - retired_families(members, settings)
    gains = [_gain(alive, last_round)]
    gains += [
        _gain([one for one in alive if one.family == family], last_round)
        for family in open_families
    ]
    return max(gains, key=lambda gain: (gain.is_confirmed, gain.fraction))


def _gain(members: Sequence[Member], last_round: int) -> Gain:
    now = next(iter(rank(members)), None)
    then = next(iter(rank(one for one in members if one.round < last_round)), None)
    speed = None if now is None else speed_of(now)
    earlier = None if then is None else speed_of(then)
    if now is None or speed is None:
        return Gain(0.0, is_confirmed=False)
    if earlier is None:
        return Gain(inf, is_confirmed=True)
    fraction = max(0.0, speed.gain_over(earlier))
    return Gain(fraction, speed.is_above(earlier) and fraction > noise_of(now))


def _near_roofline(leader: Member, settings: SearchSettings) -> str | None:
    """Return in words that nothing is left to gain; None where that is not known."""
    timing = leader.timing
    floor = None if timing is None else timing.metric(FLOOR)
    latency = None if timing is None else timing.latency
    if floor is None or latency is None or not floor.value or not latency.value:
        return None
    fraction = floor.value / latency.value
    if fraction < settings.roofline_stop:
        return None
    return (
        f"the best takes {latency.value:.3f} us ({latency.provenance.value}); the least possible is"
        f" {floor.value:.3f} us ({floor.provenance.value}), {fraction:.0%} of it"
    )


def _provenance(leader: Member) -> str:
    latency = None if leader.timing is None else leader.timing.latency
    return "unknown" if latency is None else latency.provenance.value
