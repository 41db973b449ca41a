"""Which programs of a run are compared, so that each teaches once: the trials behind the samples.

A change that mixes techniques is split where a relative or a variant with a part of them was
evaluated, else it is one composite. What cheats is a failure, never a gain.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopt.search.records.members import Member
from kopt.search.selection.ranking import rank

from .ablations import Step, Variant, missing_variants, split
from .applications import TUNE_CONSTANTS, Application, History, Line
from .comparing import Comparison, is_unjudged, program_of


@dataclass(frozen=True)
class Trial:
    """One step with what it taught."""

    name: str
    """Unique within the run."""
    step: Step
    found: Comparison | None
    """None if the program after does not work, or cheats."""
    start: Member
    """The program that the whole change began with."""
    hypothesis: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the branch; {} without one."""


def find_trials(history: History, is_final: bool) -> tuple[Trial, ...]:
    """Return every trial of a run: of its applications in their order, then of its sweeps.

    A composite that its variants can still split has none yet, unless the run `is_final`.
    """
    compared: set[tuple[str, str]] = set()
    found: list[Trial] = []
    for application in history.applications:
        programs = program_of(application.before), program_of(application.after)
        if programs not in compared and (is_final or not wanted_variants(application, history)):
            found += _of_application(application, history)
        compared.add(programs)
    return (*found, *_of_sweeps(history))


def wanted_variants(application: Application, history: History) -> tuple[Variant, ...]:
    """Return the variants that would split a composite, if its effect is more than noise."""
    judge = history.judge
    if len(application.techniques) < 2 or not judge.is_honest(application.after):
        return ()
    found = judge.compare(application.before, application.after)
    if found is None or found.outcome == "within_noise" or _relative(application, history):
        return ()
    return missing_variants(application, history)


def _of_application(application: Application, history: History) -> Iterator[Trial]:
    judge, before, after = history.judge, application.before, application.after
    hypothesis = application.hypothesis
    whole = Step(before, after, application.techniques, history.made_by(before))
    if is_unjudged(after):
        return
    if not judge.is_honest(after):
        # A name of its own: what was taught before the refutation is to be revoked.
        name = f"{after.seq}/refuted" if judge.is_refuted(after) else f"{after.seq}"
        yield Trial(name, whole, None, before, hypothesis)
        return
    for name, step in _steps(whole, application, history):
        found = judge.compare(step.before, step.after)
        if found is not None:
            yield Trial(name, step, found, before, hypothesis)


def _steps(whole: Step, application: Application, history: History) -> list[tuple[str, Step]]:
    """Return the parts that a change can be told in, each with its name within the run."""
    after = application.after
    relative = _relative(application, history)
    if relative is not None:
        rest = tuple(one for one in application.techniques if one not in relative.techniques)
        step = Step(relative.after, after, rest, history.made_by(relative.after))
        return [(f"{after.seq}/from{relative.after.seq}", step)]
    parts = split(application, history)
    return [(f"{after.seq}/{one.name}", one) for one in parts] or [(f"{after.seq}", whole)]


def _relative(application: Application, history: History) -> Application | None:
    """Return the nearest relative: the largest part of the techniques over the same program.

    Only one of an earlier round or of the same, so that what was taught stays taught; and none that
    is slower than both programs, since to be better than that is no gain.
    """
    techniques, before, after = set(application.techniques), application.before, application.after
    judge = history.judge
    parts = [
        other
        for other in history.applications
        if set(other.techniques) < techniques
        and other.before.seq == before.seq
        and other.after.round <= after.round
        and judge.is_honest(other.after)
        and not judge.is_detour(before, other.after, after)
    ]
    return max(parts, key=lambda one: len(one.techniques), default=None)


def _of_sweeps(history: History) -> Iterator[Trial]:
    """Yield a trial for each round in which a source was swept: its best against that before."""
    swept: dict[Line, dict[int, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for member in sorted(history.members, key=lambda one: one.order):
        if member.quick is not None and history.is_swept(member):
            swept[history.line_of(member)][member.round].append(member)
    for line, rounds in swept.items():
        earlier = [history.first_of(line)]
        for number in sorted(rounds):
            yield from _of_sweep(earlier, rounds[number], history)
            earlier += rounds[number]


def _of_sweep(
    earlier: Sequence[Member], group: Sequence[Member], history: History
) -> Iterator[Trial]:
    """Yield what one round of a sweep taught.

    One that finds nothing faster leaves the program as it was, which is no loss.
    """
    judge = history.judge
    known = rank(one for one in earlier if judge.is_honest(one))
    if not known:
        return
    before = known[0]
    best = rank(one for one in (*known, *group) if judge.is_honest(one))[0]
    found = judge.compare(before, best)
    after, tried = (before, group[0]) if best in known else (best, best)
    if found is not None:
        step = Step(before, after, (TUNE_CONSTANTS,), history.made_by(before))
        yield Trial(f"{tried.seq}/from{before.seq}", step, found, before)
