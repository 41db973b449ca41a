"""Which candidates of a run are applications of techniques, to which program, and what it gave.

A branch is one application, however often its candidate was mended: the last one that works
stands for it, else the last one. A candidate without a branch is one by itself. Other tune
values of a known source are none: they are sweeps or ablations. A candidate that cheats, or that a
later check refuted, has no speed here, whatever was timed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import hypot, log, log1p
from typing import Any

from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.records import Outcome, technique_of
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow
from kopt.search.selection.family_evidence import is_contradicted
from kopt.search.selection.ranking import (
    Speed,
    equivalence_of,
    noise_of,
    refuted_programs,
    speed_of,
)

MOST_TECHNIQUES = 4
"""A change that claims more teaches nothing: no record could say what it was."""
TUNE_CONSTANTS = "tune_constants"
"""The technique that a sweep applies."""

Line = tuple[str, tuple[tuple[str, int], ...] | None]
"""A source and the switches that are set in it; None: whatever they are."""


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


@dataclass(frozen=True)
class Application:
    """Techniques that were applied to a program, and the candidate that came of it."""

    before: Member
    """The nearest ancestor that works; what failed on the way was mended, not built upon."""
    after: Member
    techniques: tuple[str, ...]
    """Claimed, in order; at least one."""
    previous: str | None
    """The technique that made the program before, if it is known."""
    hypothesis: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The branch's hypothesis; {} without a branch."""


@dataclass(frozen=True)
class History:
    """All candidates of a run so far with its branches."""

    members: Sequence[Member]
    """By `seq`."""
    branches: Sequence[BranchRow]
    min_effect: float
    """Fraction of the speed below which a change is none."""
    catalogue: frozenset[str]
    """Techniques that may have a switch."""

    @cached_property
    def _refuted(self) -> Mapping[str, int]:
        """Programs that a later check refuted, under whatever number."""
        return refuted_programs(self.members)

    @cached_property
    def by_seq(self) -> Mapping[int, Member]:
        """Every candidate by its number."""
        return {member.seq: member for member in self.members}

    @cached_property
    def _firsts(self) -> Mapping[Line, Member]:
        """The first candidate of each source, and of each source with the same switches."""
        found: dict[Line, Member] = {}
        for member in sorted(self.members, key=lambda one: one.seq):
            found.setdefault((member.source_sha, None), member)
            found.setdefault(self.line_of(member), member)
        return found

    def line_of(self, member: Member) -> Line:
        """Return what a candidate has in common with those that differ in constants alone."""
        return member.source_sha, tuple(sorted(self.switches(member).items()))

    def first_of(self, line: Line) -> Member:
        """Return the candidate whose constants were swept."""
        return self._firsts[line]

    def is_variant(self, member: Member) -> bool:
        """Return whether it is a known source with other tune values."""
        return member.branch is None and self._firsts[member.source_sha, None] is not member

    def is_swept(self, member: Member) -> bool:
        """Return whether it differs from a known candidate in constants alone, not in switches."""
        return member.branch is None and self.first_of(self.line_of(member)) is not member

    def made_by(self, member: Member) -> str | None:
        """Return the technique that was applied last in making a candidate, if it is known."""
        if is_contradicted(member):
            return None
        if self.is_swept(member):
            return TUNE_CONSTANTS
        is_named = member.techniques and not self.is_variant(member)
        return member.techniques[-1] if is_named else None

    @cached_property
    def applications(self) -> tuple[Application, ...]:
        """Every application that has ended, in the order of the candidates."""
        is_open = {row.id for row in self.branches if row.state == "open"}
        units: dict[str, list[Member]] = {}
        for member in sorted(self.members, key=lambda one: one.order):
            key = member.branch or f"#{member.seq}"
            if member.quick is not None and key not in is_open and not self.is_variant(member):
                units.setdefault(key, []).append(member)
        found = map(self._application, units.values())
        return tuple(one for one in found if one is not None)

    def _application(self, unit: Sequence[Member]) -> Application | None:
        """Return what the evaluated candidates of a branch, first to last, come to."""
        after = next((one for one in reversed(unit) if one.passed), unit[-1])
        before, techniques = self._origin(unit[0])
        if before is None:
            return None
        techniques = self._claimed(before, after, techniques or self._brought_in(unit[0]))
        if not 0 < len(techniques) <= MOST_TECHNIQUES:
            return None
        told = (row.hypothesis for row in self.branches if row.id == after.branch)
        return Application(
            before, after, techniques, self.made_by(before), next(told, dict[str, Any]())
        )

    def _origin(self, member: Member) -> tuple[Member | None, tuple[str, ...]]:
        """Return the program that was changed, and what is claimed of the change."""
        techniques = member.techniques
        for at in self._line(member.parents[:1]):
            if at.passed:
                return at if self.has_speed(at) else None, techniques
            techniques = (*at.techniques, *techniques)
        return None, techniques

    def _claimed(self, before: Member, after: Member, named: Sequence[str]) -> tuple[str, ...]:
        """Return the techniques of a change: those named, and those whose switches it brought.

        A switch that is on in the program before was brought by an earlier change.
        """
        earlier, switches = self.switches(before), self.switches(after)
        brought = (name for name in switches if not earlier.get(name))
        return tuple(name for name in dict.fromkeys((*named, *brought)) if switches.get(name, 1))

    def _brought_in(self, member: Member) -> tuple[str, ...]:
        """Return the techniques that a merge brings from its other parents to the skeleton."""
        known = {one.seq for one in self._line(member.parents[:1])}
        others = [[*self._line((seq,))] for seq in member.parents[1:]]
        new = [one for line in others for one in reversed(line) if one.seq not in known]
        return tuple(name for one in new for name in one.techniques)

    def _line(self, parents: Sequence[int]) -> Iterator[Member]:
        """Yield a parent and those that it was made from, the skeletons of merges only."""
        while parents and parents[0] in self.by_seq:
            yield self.by_seq[parents[0]]
            parents = self.by_seq[parents[0]].parents

    def switches(self, member: Member) -> dict[str, int]:
        """Return the tune values that switch a known technique, by technique."""
        named = ((technique_of(name), value) for name, value in member.tune.items())
        return {name: value for name, value in named if name is not None and name in self.catalogue}

    def is_refuted(self, member: Member) -> bool:
        """Return whether a check after the quick one failed, of this program or of an equal one."""
        return member.is_refuted or equivalence_of(member) in self._refuted

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
        return (
            into is not None
            and out is not None
            and (into.outcome, out.outcome) == ("lost", "gained")
        )


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
