"""The order of candidates: by what is proven of their speed, then by simplicity.

A candidate stands where the lower bound of its interval puts it, so that a lucky measurement with
few pairs does not lead. Those that cannot be told from the best of them stand by simplicity.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import NOISE_FLOOR
from kopt.search.records.members import Member


@dataclass(frozen=True)
class Speed:
    """Greater is faster; compares within one run only.

    Measured: the paired speedup over the run's baseline with its 95 % interval. Estimated, on sim:
    calls per microsecond, as wide as two estimates have to differ to be told apart.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low

    def is_above(self, other: "Speed") -> bool:
        """Return whether the intervals leave no doubt that this is the greater one."""
        return self.low > other.high

    def gain_over(self, other: "Speed") -> float:
        """Return by which fraction this is the greater one: 0.03 for 3 %."""
        return self.value / other.value - 1.0


def speed_of(member: Member) -> Speed | None:
    """Return how fast `member` is; None where no time of it counts."""
    timing, cost = member.timing, member.cost
    if timing is None or not cost:
        return None
    value = 1.0 / cost
    if timing.speedup is None or timing.speedup_interval is None:
        half = noise_of(member) / 2
        return Speed(value, value * (1 - half), value * (1 + half))
    return Speed(value, *timing.speedup_interval)


def speed_words(member: Member) -> str:
    """Return `1.213x flashinfer (measured)` or `2.413 us (estimated)`; `no time` for neither."""
    timing = member.timing
    if timing is not None and timing.speedup is not None:
        return f"{timing.speedup.value:.3f}x {timing.speedup.unit} (measured)"
    latency = None if timing is None else timing.latency
    if latency is None or latency.value is None or latency.provenance is Provenance.MEASURED:
        return "no time"
    return f"{latency.value:.3f} us ({latency.provenance.value})"


def noise_of(member: Member) -> float:
    """Return the least relative change that its device, or the estimate, could tell from none."""
    noise = None if member.timing is None else member.timing.metric(NOISE_FLOOR)
    return 0.0 if noise is None or noise.value is None else noise.value


def rank(members: Iterable[Member]) -> list[Member]:
    """Return the members that passed, best first, the same program once.

    Ties go to fewer registers, then the shorter source, then the earlier candidate. A member that
    passed without a time that counts comes last.
    """
    standing = _one_per_program(member for member in members if member.passed)
    timed = [(speed, member) for member in standing if (speed := speed_of(member)) is not None]
    timed.sort(key=lambda pair: (-pair[0].low, _simplicity(pair[1])))
    ranked = [member for group in _tied_groups(timed) for member in group]
    ranked += sorted((m for m in standing if speed_of(m) is None), key=_simplicity)
    return ranked


def rank_unrefuted(members: Iterable[Member]) -> list[Member]:
    """Return `rank` of those that no later check has refuted."""
    return rank(unrefuted(members))


def unrefuted(members: Iterable[Member]) -> list[Member]:
    """Return the members that no later check has refuted, nor another of the same program.

    The same cubins and launches would fail the same check.
    """
    candidates = tuple(members)
    refuted = refuted_programs(candidates)
    return [
        member
        for member in candidates
        if not member.is_refuted and equivalence_of(member) not in refuted
    ]


def refuted_programs(members: Iterable[Member]) -> dict[str, int]:
    """Return who was refuted by a later check, by the equivalence of its program."""
    pairs = ((equivalence_of(member), member) for member in members if member.is_refuted)
    return {equivalence: member.seq for equivalence, member in pairs if equivalence is not None}


def equivalence_of(member: Member) -> str | None:
    """Return what is equal for candidates that are the same program; None if unknown."""
    return None if member.quick is None else member.quick.equivalence


def _one_per_program(members: Iterable[Member]) -> list[Member]:
    """Return one candidate of each program: the one measured longest, then the simplest.

    Sources that differ in comments and blanks only are the same program: they give equal cubins.
    """
    chosen: dict[str | int, Member] = {}
    for member in members:
        equivalence = equivalence_of(member)
        key = member.seq if equivalence is None else equivalence
        if key not in chosen or _standing(member) < _standing(chosen[key]):
            chosen[key] = member
    return list(chosen.values())


def _standing(member: Member) -> tuple[bool, float, int, tuple[int, ...]]:
    return (member.timing is member.quick, *_simplicity(member))


def _tied_groups(timed: Sequence[tuple[Speed, Member]]) -> Iterable[list[Member]]:
    """Yield the members in groups, best first: the best and all that are tied with it."""
    rest = list(timed)
    while rest:
        best = rest[0][0]
        least = best.low - best.width
        tied, others = [rest[0][1]], list[tuple[Speed, Member]]()
        for place, (speed, member) in enumerate(rest[1:], start=1):
            if speed.low < least:  # nor does anything behind it come near
                others += rest[place:]
                break
            if speed.value >= best.low:
                tied.append(member)
            else:
                others.append((speed, member))
        yield sorted(tied, key=_simplicity)
        rest = others


def _simplicity(member: Member) -> tuple[float, int, tuple[int, ...]]:
    registers = member.quick.registers if member.quick else None
    return inf if registers is None else registers, len(member.source), member.order
