"""What is compared with what, so that every program teaches once: the steps behind the samples.

A change that mixes techniques is split where a relative or a variant with a part of them was
evaluated, else it is one composite. What cheats is a failure, never a gain.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopt.search.proposer import Member
from kopt.search.selection.ranking import rank

from .ablations import Step, Variant, missing_variants, split
from .applications import TUNE_CONSTANTS, Application, Line, Population
from .comparing import Comparison, is_unjudged, program_of


@dataclass(frozen=True)
class Lesson:
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


def find_lessons(population: Population, is_final: bool) -> tuple[Lesson, ...]:
    """Return every lesson of a run: of its applications in their order, then of its sweeps.

    A composite that its variants can still split has none yet, unless the run `is_final`.
    """
    compared: set[tuple[str, str]] = set()
    found: list[Lesson] = []
    for application in population.applications:
        programs = program_of(application.before), program_of(application.after)
        if programs not in compared and (is_final or not wanted_variants(application, population)):
            found += _of_application(application, population)
        compared.add(programs)
    return (*found, *_of_sweeps(population))


def wanted_variants(application: Application, population: Population) -> tuple[Variant, ...]:
    """Return the variants that would split a composite, if its effect is more than noise."""
    judge = population.judge
    if len(application.techniques) < 2 or not judge.is_honest(application.after):
        return ()
    found = judge.compare(application.before, application.after)
    if found is None or found.outcome == "within_noise" or _relative(application, population):
        return ()
    return missing_variants(application, population)


def _of_application(application: Application, population: Population) -> Iterator[Lesson]:
    judge, before, after = population.judge, application.before, application.after
    hypothesis = application.hypothesis
    whole = Step(before, after, application.techniques, population.made_by(before))
    if is_unjudged(after):
        return
    if not judge.is_honest(after):
        # A name of its own: what was taught before the refutation is to be revoked.
        name = f"{after.seq}/refuted" if judge.is_refuted(after) else f"{after.seq}"
        yield Lesson(name, whole, None, before, hypothesis)
        return
    for name, step in _steps(whole, application, population):
        found = judge.compare(step.before, step.after)
        if found is not None:
            yield Lesson(name, step, found, before, hypothesis)


def _steps(whole: Step, application: Application, population: Population) -> list[tuple[str, Step]]:
    """Return the parts that a change can be told in, each with its name within the run."""
    after = application.after
    relative = _relative(application, population)
    if relative is not None:
        rest = tuple(one for one in application.techniques if one not in relative.techniques)
        step = Step(relative.after, after, rest, population.made_by(relative.after))
        return [(f"{after.seq}/from{relative.after.seq}", step)]
    parts = split(application, population)
    return [(f"{after.seq}/{one.name}", one) for one in parts] or [(f"{after.seq}", whole)]


def _relative(application: Application, population: Population) -> Application | None:
    """Return the nearest relative: the largest part of the techniques over the same program.

    Only one of an earlier round or of the same, so that what was taught stays taught.
    """
    techniques, after = set(application.techniques), application.after
    parts = [
        other
        for other in population.applications
        if set(other.techniques) < techniques
        and other.before.seq == application.before.seq
        and other.after.round <= after.round
        and population.judge.is_honest(other.after)
    ]
    return max(parts, key=lambda one: len(one.techniques), default=None)


def _of_sweeps(population: Population) -> Iterator[Lesson]:
    """Yield a lesson for each round in which a source was swept: its best against that before."""
    swept: dict[Line, dict[int, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for member in sorted(population.members, key=lambda one: one.order):
        if member.quick is not None and population.is_swept(member):
            swept[population.line_of(member)][member.round].append(member)
    for line, rounds in swept.items():
        earlier = [population.first_of(line)]
        for number in sorted(rounds):
            yield from _of_sweep(earlier, rounds[number], population)
            earlier += rounds[number]


def _of_sweep(
    earlier: Sequence[Member], group: Sequence[Member], population: Population
) -> Iterator[Lesson]:
    """Yield what one round of a sweep taught.

    One that finds nothing faster leaves the program as it was, which is no loss.
    """
    judge = population.judge
    known = rank(one for one in earlier if judge.has_speed(one))
    if not known:
        return
    before = known[0]
    best = rank(one for one in (*known, *group) if judge.has_speed(one))[0]
    found = judge.compare(before, best)
    after, tried = (before, group[0]) if best in known else (best, best)
    if found is not None:
        step = Step(before, after, (TUNE_CONSTANTS,), population.made_by(before))
        yield Lesson(f"{tried.seq}/from{before.seq}", step, found, before)
