"""What is left of the leader's time to a plain copy of as many bytes, and what a round may gain.

The copy's time was measured on the same GPU (`tools/bench/plain_copy.py`), at another moment than
the leader's: they compare to a percent or two. On sim there is none, and nothing is said here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.search.records.evaluation import BELOW_COPY, COPY
from kopt.search.records.members import Member

from .ranking import rank, rank_unrefuted, speed_of, unrefuted


@dataclass(frozen=True)
class Headroom:
    """The leader beside a plain copy."""

    leader_us: float
    copy_us: float

    @property
    def left(self) -> float:
        """The gain that would make the leader as fast as the copy: 0.03 for 3 %; never below 0."""
        return max(0.0, self.leader_us / self.copy_us - 1.0)

    @property
    def words(self) -> str:
        """The leader's time beside the copy's."""
        return (
            f"the best takes {self.leader_us:.3f} us, {self.leader_us / self.copy_us:.2f} times a"
            f" plain copy of as many bytes ({self.copy_us:.3f} us, measured)"
        )


def headroom_of(members: Sequence[Member]) -> Headroom | None:
    """Return where the leader stands; None without a leader or without a copy's time.

    None, too, where the leader is clearly faster than the copy: one of both is no yardstick then.
    """
    leader = next(iter(rank_unrefuted(members)), None)
    copy_us = copy_us_of(members)
    if leader is None or not leader.latency_us or not copy_us or below_copy(leader) is not None:
        return None
    return Headroom(leader.latency_us, copy_us)


def below_copy(member: Member) -> float | None:
    """Return which part of the copy's time a clearly faster candidate takes; None for others."""
    flag = None if member.timing is None else member.timing.metric(BELOW_COPY)
    return None if flag is None else flag.value


def copy_us_of(members: Sequence[Member]) -> float | None:
    """Return the copy's time as the first candidate that was timed has it; None on sim."""
    timed = (one.quick.metric(COPY) for one in members if one.quick is not None)
    return next((copy.value for copy in timed if copy is not None), None)


def expected_gain(members: Sequence[Member], last_round: int) -> float:
    """Return what another round as good as `last_round` would add to the best: 0.03 for 3 %.

    The best and each family are expected to gain once more what they gained in that round, and a
    family counts for as much as that would put it ahead of the best. The first success of a family
    is no gain of it.
    """
    alive = unrefuted(members)
    leader = next(iter(rank(alive)), None)
    best = None if leader is None else speed_of(leader)
    if best is None:
        return 0.0
    found = [0.0]
    lines = [alive, *([m for m in alive if m.family == f] for f in {m.family for m in alive})]
    for line in lines:
        now, then = _best_value(line), _best_value([m for m in line if m.round < last_round])
        if now is not None and then is not None:
            found.append(now * max(1.0, now / then) / best.value - 1.0)
    return max(found)


def _best_value(members: Sequence[Member]) -> float | None:
    first = next(iter(rank(members)), None)
    speed = None if first is None else speed_of(first)
    return None if speed is None else speed.value
