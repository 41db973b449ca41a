"""Composites taken apart: how much each of several techniques gains, without asking a model.

A candidate that declares switches is measured with its last technique off, then with its last two
off, and so on. Each step from one of these variants to the next applies one technique more, so that
the log ratios of the steps add up to that of the whole, and nothing counts twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kopt.search.records.members import Member

from .applications import Application, History
from .switches import switch_of


@dataclass(frozen=True)
class Variant:
    """A candidate with some of its techniques switched off, still to be evaluated."""

    seq: int
    """Of the candidate."""
    tune: dict[str, int]
    """All tune values of the variant."""


@dataclass(frozen=True)
class Step:
    """A part of a composite, between two programs that were both evaluated."""

    before: Member
    after: Member
    techniques: tuple[str, ...]
    """Several where the program between them does not work, or has no switch."""
    previous: str | None
    """The technique that made the program before, if it is known."""

    @property
    def name(self) -> str:
        """Return what tells the steps of one candidate apart."""
        return "+".join(map(switch_of, self.techniques))


def missing_variants(application: Application, history: History) -> tuple[Variant, ...]:
    """Return the variants of a composite that are not candidates of the run yet."""
    member = application.after
    return tuple(
        Variant(member.seq, tune)
        for _, tune in _prefixes(application, history)
        if _find(member, tune, history) is None
    )


def split(application: Application, history: History) -> tuple[Step, ...]:
    """Return the steps of a composite between the variants that work; () if there are none.

    A variant that is slower than both programs is none of them: what it does in place of a
    technique is worse than what stood there, and not to do it is no gain of the technique.
    """
    member, judge, start = application.after, history.judge, application.before
    known = ((kept, _find(member, tune, history)) for kept, tune in _prefixes(application, history))
    working = [
        (kept, one)
        for kept, one in known
        if one is not None and judge.has_speed(one) and not judge.is_detour(start, one, member)
    ]
    if not working:
        return ()
    ordered = _ordered(application, history)
    steps: list[Step] = []
    before, done = application.before, 0
    previous = history.made_by(before)
    for kept, after in (*working, (len(ordered), member)):
        steps.append(Step(before, after, ordered[done:kept], previous))
        before, done, previous = after, kept, ordered[kept - 1]
    return tuple(steps)


def _prefixes(application: Application, history: History) -> list[tuple[int, dict[str, int]]]:
    """Return how many techniques each variant keeps, the fewest first, and its tune values.

    The program before stands for the variant that keeps none.
    """
    ordered = _ordered(application, history)
    switches = history.switches(application.after)
    fixed = sum(name not in switches for name in ordered)
    return [
        (kept, {**application.after.tune, **_off(ordered[kept:])})
        for kept in range(max(fixed, 1), len(ordered))
    ]


def _ordered(application: Application, history: History) -> tuple[str, ...]:
    """Return the techniques as they are taken apart: those without a switch come first."""
    switches = history.switches(application.after)
    return tuple(sorted(application.techniques, key=lambda name: name in switches))


def _off(techniques: tuple[str, ...]) -> Mapping[str, int]:
    return {switch_of(technique): 0 for technique in techniques}


def _find(member: Member, tune: Mapping[str, int], history: History) -> Member | None:
    same = (one for one in history.members if one.source_sha == member.source_sha)
    return next((one for one in same if one.tune == tune), None)
