"""Which programs of a run are compared, so that each teaches once: the trials behind the samples.

A change that mixes techniques is split where a relative or an ablation with a part of them was
evaluated, else it is one composite. A candidate that cheats is a failure, never a gain.

Ablations: a candidate that declares switches is measured with its last technique off, then with its
last two off, and so on. Each step from one of these variants to the next applies one technique
more, so that the log ratios of the steps add up to that of the whole, and nothing counts twice.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopt.search.knowledge.records import switch_of
from kopt.search.records.members import Member
from kopt.search.selection.ranking import rank

from .applications import TUNE_CONSTANTS, Application, History, Line
from .comparing import SpeedComparison, is_unjudged, program_of


@dataclass(frozen=True)
class Ablation:
    """A candidate with some of its techniques switched off, still to be evaluated."""

    seq: int
    """`seq` of the candidate."""
    tune: dict[str, int]
    """All tune values of the variant."""


@dataclass(frozen=True)
class AblationStep:
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


def missing_variants(application: Application, history: History) -> tuple[Ablation, ...]:
    """Return the variants of a composite that are not candidates of the run yet."""
    member = application.after
    return tuple(
        Ablation(member.seq, tune)
        for _, tune in _prefixes(application, history)
        if _find(member, tune, history) is None
    )


def split(application: Application, history: History) -> tuple[AblationStep, ...]:
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
    steps: list[AblationStep] = []
    before, done = application.before, 0
    previous = history.made_by(before)
    for kept, after in (*working, (len(ordered), member)):
        steps.append(AblationStep(before, after, ordered[done:kept], previous))
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


@dataclass(frozen=True)
class Trial:
    """One step with what it taught."""

    name: str
    """Unique within the run."""
    step: AblationStep
    found: SpeedComparison | None
    """The comparison; None if the program after does not work, or cheats."""
    start: Member
    """The program that the whole change began with."""
    hypothesis: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The branch's hypothesis; {} without a branch."""


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
    whole = AblationStep(before, after, application.techniques, history.made_by(before))
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


def _steps(
    whole: AblationStep, application: Application, history: History
) -> list[tuple[str, AblationStep]]:
    """Return the parts that a change can be told in, each with its name within the run."""
    after = application.after
    relative = _relative(application, history)
    if relative is not None:
        rest = tuple(one for one in application.techniques if one not in relative.techniques)
        step = AblationStep(relative.after, after, rest, history.made_by(relative.after))
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
        step = AblationStep(before, after, (TUNE_CONSTANTS,), history.made_by(before))
        yield Trial(f"{tried.seq}/from{before.seq}", step, found, before)
