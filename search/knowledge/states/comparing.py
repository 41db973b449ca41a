"""Comparison of two candidates of one run: the log ratio of their speeds, if it counts.

A candidate that cheats, or that a later check refuted, has no speed here, whatever was timed.
"""

from dataclasses import dataclass
from math import hypot, log, log1p

from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.records import Outcome
from kopt.search.records.members import Member
from kopt.search.selection.family_evidence import is_contradicted
from kopt.search.selection.ranking import (
    Speed,
    equivalence_of,
    noise_of,
    speed_of,
)


@dataclass(frozen=True)
class SpeedComparison:
    """How much faster one program is than another."""

    measured: float
    """ln(speed after / speed before)."""
    interval: tuple[float, float] | None
    """95 % interval; None for an estimate, which has no spread."""
    outcome: Outcome


UNCHANGED = SpeedComparison(0.0, None, "within_noise")
"""The comparison of a program with itself."""
_DETOUR = ("lost", "gained")


@dataclass(frozen=True)
class Judge:
    """Which candidates of a run can be believed, and how they compare."""

    refuted: frozenset[str]
    """Programs that a later check refuted, under whatever number."""
    min_effect: float
    """Fraction of the speed below which a change is none."""

    def is_refuted(self, member: Member) -> bool:
        """Return whether a check after the quick one failed, of this program or of an equal one."""
        return member.is_refuted or equivalence_of(member) in self.refuted

    def has_speed(self, member: Member) -> bool:
        """Return whether the program works and its time counts: an impossible one does not."""
        return member.passed and not self.is_refuted(member) and speed_of(member) is not None

    def is_honest(self, member: Member) -> bool:
        """Return whether it has a speed, and its machine code does not belie its family."""
        return self.has_speed(member) and not is_contradicted(member)

    def compare(self, before: Member, after: Member) -> SpeedComparison | None:
        """Return what both speeds say; None where they do not compare.

        Measured speeds need their intervals and the same baseline; an estimate compares with
        estimates only. A change counts only if it is greater than `min_effect` and than the noise
        of both, and if its interval leaves no doubt of its sign.
        """
        if not self.has_speed(before) or not self.has_speed(after):
            return None
        if are_equal(before, after):
            return UNCHANGED
        old, new = speed_of(before), speed_of(after)
        scale = _scale(after)
        if old is None or new is None or scale is None or _scale(before) != scale:
            return None
        measured = log(new.value / old.value)
        interval = _interval(measured, old, new) if is_measured(after) else None
        low, high = (measured, measured) if interval is None else interval
        noise = max(log1p(self.min_effect), noise_of(before), noise_of(after))
        outcome: Outcome = "gained" if measured > 0.0 else "lost"
        is_noise = low <= 0.0 <= high or abs(measured) <= noise
        return SpeedComparison(measured, interval, "within_noise" if is_noise else outcome)

    def is_detour(self, before: Member, between: Member, after: Member) -> bool:
        """Return whether a program between two others is surely slower than both.

        What leads out of it gains nothing that the program before did not have.
        """
        into, out = self.compare(before, between), self.compare(between, after)
        return into is not None and out is not None and (into.outcome, out.outcome) == _DETOUR


def is_unjudged(member: Member) -> bool:
    """Return whether the simulator could not run it: that says nothing about a technique."""
    return member.quick is not None and member.quick.status is Status.UNSUPPORTED_ON_SIM


def are_equal(one: Member, other: Member) -> bool:
    """Return whether both are the same program: equal cubins and launches."""
    return program_of(one) == program_of(other)


def program_of(member: Member) -> str:
    """Return what is equal for candidates of the same program, as far as that is known."""
    return equivalence_of(member) or f"#{member.seq}"


def _scale(member: Member) -> str | None:
    """Return what the speed is relative to: the baseline's name, or the simulator's model."""
    timing = member.timing
    if timing is None or timing.speedup is None:
        return None if timing is None else Provenance.ESTIMATED.value
    return None if timing.speedup_interval is None else timing.speedup.unit


def is_measured(member: Member) -> bool:
    """Return whether its speed comes from paired replays on a GPU."""
    return member.timing is not None and member.timing.speedup is not None


def _interval(measured: float, old: Speed, new: Speed) -> tuple[float, float]:
    """Return the interval of a log ratio of two speeds that were measured independently.

    Source:
        Taylor, An Introduction to Error Analysis, section 3.5: independent errors of a sum add in
        quadrature; here to either side, because the intervals need not be symmetric.
    """
    below = hypot(log(new.value / new.low), log(old.high / old.value))
    above = hypot(log(new.high / new.value), log(old.value / old.low))
    return measured - below, measured + above
