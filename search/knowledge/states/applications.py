"""Which candidates of a run are applications of techniques, and to which program.

A branch is one application, however often its candidate was mended: the last one that works
stands for it, else the last one. A candidate without a branch is one by itself. Other tune
values of a known source are none: they are sweeps or ablations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kopt.search.knowledge.records import technique_of
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow
from kopt.search.selection.family_evidence import is_contradicted
from kopt.search.selection.ranking import refuted_programs

from .comparing import Judge

MOST_TECHNIQUES = 4
"""A change that claims more teaches nothing: no record could say what it was."""
TUNE_CONSTANTS = "tune_constants"
"""The technique that a sweep applies."""

Line = tuple[str, tuple[tuple[str, int], ...] | None]
"""A source and the switches that are set in it; None: whatever they are."""


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
    def judge(self) -> Judge:
        """What says which candidates can be believed."""
        return Judge(frozenset(refuted_programs(self.members)), self.min_effect)

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
        return Application(before, after, techniques, self.made_by(before), next(told, {}))

    def _origin(self, member: Member) -> tuple[Member | None, tuple[str, ...]]:
        """Return the program that was changed, and what is claimed of the change."""
        techniques = member.techniques
        at = self._parent(member)
        while at is not None and not at.passed:
            techniques = (*at.techniques, *techniques)
            at = self._parent(at)
        is_sound = at is not None and self.judge.has_speed(at)
        return at if is_sound else None, techniques

    def _claimed(self, before: Member, after: Member, named: Sequence[str]) -> tuple[str, ...]:
        """Return the techniques of a change: those named, and those whose switches it brought.

        A switch that is on in the program before was brought by an earlier change.
        """
        earlier, switches = self.switches(before), self.switches(after)
        brought = (name for name in switches if not earlier.get(name))
        return tuple(name for name in dict.fromkeys((*named, *brought)) if switches.get(name, 1))

    def _brought_in(self, member: Member) -> tuple[str, ...]:
        """Return the techniques that a merge brings from its other parents to the skeleton."""
        if len(member.parents) < 2:
            return ()
        skeleton, *others = member.parents
        known = self._line(skeleton)
        lines = [self._line(other) for other in others]
        new = [seq for line in lines for seq in reversed(line) if seq not in known]
        return tuple(name for seq in new for name in self.by_seq[seq].techniques)

    def _line(self, seq: int) -> list[int]:
        """Return a candidate and those that it was made from, the skeletons of merges only."""
        at = self.by_seq.get(seq)
        line: list[int] = []
        while at is not None:
            line.append(at.seq)
            at = self._parent(at)
        return line

    def _parent(self, member: Member) -> Member | None:
        """Return the program that a candidate was made from; parents are always older."""
        return self.by_seq.get(member.parents[0]) if member.parents else None

    def switches(self, member: Member) -> dict[str, int]:
        """Return the tune values that switch a known technique, by technique."""
        named = ((technique_of(name), value) for name, value in member.tune.items())
        return {name: value for name, value in named if name is not None and name in self.catalogue}
