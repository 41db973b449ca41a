"""Which programs of a run are compared, so that each teaches once: the trials behind the samples.

A change that mixes techniques is split where a relative or an ablation with a part of them was
evaluated, else it is one composite. A candidate that cheats is a failure, never a gain.

Ablations: a candidate that declares switches is measured with its last technique off, then with its
last two off, and so on. Each step from one of these variants to the next applies one technique
more, so that the log ratios of the steps add up to that of the whole, and nothing counts twice.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kopt.search.knowledge.records import switch_of
from kopt.search.records.members import Member
from kopt.search.selection.ranking import rank

from .applications import (
    TUNE_CONSTANTS,
    Application,
    History,
    Line,
    SpeedComparison,
    is_unjudged,
    program_of,
)


@dataclass(frozen=True)
class Ablation:
    """A candidate with some of its techniques switched off, still to be evaluated."""

    seq: int
    """`seq` of the candidate."""
    tune: dict[str, int]
    """All tune values of the variant."""


def split(application: Application, history: History) -> tuple[Application, ...]:
    """Return the steps of a composite between the variants that work; () if there are none.

    A variant that is slower than both programs is none of them: what it does in place of a
    technique is worse than what stood there, and not to do it is no gain of the technique. A step
    has several techniques where the program between them does not work, or has no switch.
    """
    member, start = application.after, application.before
    known = ((kept, _find(member, tune, history)) for kept, tune in _prefixes(application, history))
    working = [
        (kept, one)
        for kept, one in known
        if one is not None and history.has_speed(one) and not history.is_detour(start, one, member)
    ]
    ordered = _ordered(application, history)
    steps: list[Application] = []
    step, done = application, 0
    for kept, after in (*working, (len(ordered), member)) if working else ():
        steps.append(replace(step, after=after, techniques=ordered[done:kept]))
        step, done = replace(step, before=after, previous=ordered[kept - 1]), kept
    return tuple(steps)


def _prefixes(application: Application, history: History) -> list[tuple[int, dict[str, int]]]:
    """Return how many techniques each variant keeps, the fewest first, and its tune values.

    The program before stands for the variant that keeps none.
    """
    ordered = _ordered(application, history)
    switches = history.switches(application.after)
    fixed = sum(name not in switches for name in ordered)
    return [
        (kept, application.after.tune | {switch_of(name): 0 for name in ordered[kept:]})
        for kept in range(max(fixed, 1), len(ordered))
    ]


def _ordered(application: Application, history: History) -> tuple[str, ...]:
    """Return the techniques as they are taken apart: those without a switch come first."""
    switches = history.switches(application.after)
    return tuple(sorted(application.techniques, key=lambda name: name in switches))


def _find(member: Member, tune: Mapping[str, int], history: History) -> Member | None:
    same = (one for one in history.members if one.source_sha == member.source_sha)
    return next((one for one in same if one.tune == tune), None)


@dataclass(frozen=True)
class Trial:
    """One step with what it taught."""

    name: str
    """Unique within the run."""
    step: Application
    """All of a change, or the part of it between two programs that were both evaluated."""
    found: SpeedComparison | None
    """The comparison; None if the program after does not work, or cheats."""
    start: Member
    """The program that the whole change began with."""


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


def wanted_variants(application: Application, history: History) -> tuple[Ablation, ...]:
    """Return the missing variants that would split a composite whose effect is no noise."""
    member = application.after
    if len(application.techniques) < 2 or not history.is_honest(member):
        return ()
    found = history.compare(application.before, member)
    if found is None or found.outcome == "within_noise" or _relative(application, history):
        return ()
    variants = (tune for _, tune in _prefixes(application, history))
    return tuple(
        Ablation(member.seq, tune) for tune in variants if _find(member, tune, history) is None
    )


def _of_application(application: Application, history: History) -> Iterator[Trial]:
    before, after = application.before, application.after
    if is_unjudged(after):
        return
    if not history.is_honest(after):
        # A name of its own: what was taught before the refutation is to be revoked.
        name = f"{after.seq}/refuted" if history.is_refuted(after) else f"{after.seq}"
        yield Trial(name, application, None, before)
        return
    for name, step in _steps(application, history):
        found = history.compare(step.before, step.after)
        if found is not None:
            yield Trial(f"{after.seq}{name}", step, found, before)


def _steps(application: Application, history: History) -> list[tuple[str, Application]]:
    """Return the parts that a change can be told in, each with the end of its name."""
    relative = _relative(application, history)
    if relative is not None:
        between = relative.after
        rest = tuple(one for one in application.techniques if one not in relative.techniques)
        previous = history.made_by(between)
        step = replace(application, before=between, techniques=rest, previous=previous)
        return [(f"/from{between.seq}", step)]
    parts = split(application, history)
    named = [("/" + "+".join(map(switch_of, one.techniques)), one) for one in parts]
    return named or [("", application)]


def _relative(application: Application, history: History) -> Application | None:
    """Return the nearest relative: the largest part of the techniques over the same program.

    Only one of an earlier round or of the same, so that what was taught stays taught; and none that
    is slower than both programs, since to be better than that is no gain.
    """
    techniques, before, after = set(application.techniques), application.before, application.after
    parts = [
        other
        for other in history.applications
        if set(other.techniques) < techniques
        and other.before.seq == before.seq
        and other.after.round <= after.round
        and history.is_honest(other.after)
        and not history.is_detour(before, other.after, after)
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
    known = rank(one for one in earlier if history.is_honest(one))
    if not known:
        return
    before = known[0]
    best = rank(one for one in (*known, *group) if history.is_honest(one))[0]
    found = history.compare(before, best)
    after, tried = (before, group[0]) if best in known else (best, best)
    if found is not None:
        step = Application(before, after, (TUNE_CONSTANTS,), history.made_by(before))
        yield Trial(f"{tried.seq}/from{before.seq}", step, found, before)
