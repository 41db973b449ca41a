"""The score of a suite: what share of its tasks is valid, how fast, over all and by group.

`ScoredTask` is what a score is made of, whether a task was run by kopt or is told by another
benchmark's file (`kernelbench.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kopt.kernels.record import Record
from kopt.kernels.status import Status

from .score_statistics import (
    UNAVAILABLE,
    Bootstrap,
    Numbers,
    Rows,
    ScoreFigure,
    geomean,
    mean,
    median,
    share,
)
from .suite_file import Mark

THRESHOLDS = (1.0, 1.5, 2.0)


class ScoredTask(Record):
    """One task as scores count it."""

    task: str
    group: str
    mark: Mark | None = None
    why_marked: str = ""
    is_valid: bool
    status: Status | None
    """None: it was not run, or has a fault that is not its kernel's."""
    reason: str = ""
    """Why it is not valid, or valid and without a speed."""
    speedup: float | None = None
    """Measured; None where it is unavailable."""
    speedup_low: float | None = None
    """The lower end of its 95 % interval."""
    sol_score: float | None = None
    is_like_for_like: bool = True
    latency_us: tuple[float, ...] = ()
    """Median times at its workloads; estimated where the set's are."""

    @property
    def is_sound(self) -> bool:
        """Whether a right answer of it proves something."""
        return self.mark not in ("degenerate", "random")


class FastShare(Record):
    """The share of all tasks that are valid and faster than p times the baseline."""

    p: float
    by_estimate: ScoreFigure
    """By the speedup itself, as KernelBench counts fast_p."""
    by_interval: ScoreFigure
    """By the lower end of its 95 % interval: those that are faster beyond doubt."""


class GroupScore(Record):
    """The scores of some tasks of a suite."""

    group: str | None
    """None: of all groups."""
    sound_only: bool
    """Whether degenerate and random tasks are left out."""
    tasks: int
    valid: int
    timed: int
    """Valid tasks with a speed."""
    valid_rate: ScoreFigure
    """ValidRate: share of all tasks that are valid."""
    fast: tuple[FastShare, ...]
    geomean: ScoreFigure
    mean: ScoreFigure
    median: ScoreFigure
    minimum: float | None
    maximum: float | None
    above_1x: ScoreFigure
    """Share of the timed tasks."""
    below_1x: ScoreFigure
    geomean_failures_1x: ScoreFigure
    """Geometric mean over all tasks, those without a speed counting as 1.0."""
    geomean_above_1x: ScoreFigure
    """Over the timed tasks that are faster than the baseline alone."""
    median_above_1x: ScoreFigure
    sol_score: ScoreFigure
    """Mean over all tasks that have a floor to reach; one that is not valid counts 0."""


@dataclass(frozen=True)
class Scoring:
    """How tasks are scored."""

    thresholds: tuple[float, ...] = THRESHOLDS
    seed: int = 0
    has_speeds: bool = True
    """Whether speeds were measured at all; else every figure of them is unavailable, not 0."""
    has_intervals: bool = True


def score_groups(tasks: Sequence[ScoredTask], scoring: Scoring) -> tuple[GroupScore, ...]:
    """Return the score of all tasks, that of the sound ones if they are fewer, and each group's.

    A suite of one group has no row for it beside that of all.
    """
    sound = [one for one in tasks if one.is_sound]
    scores = [score_tasks(tasks, scoring)]
    if len(sound) < len(tasks):
        scores.append(score_tasks(sound, scoring).model_copy(update={"sound_only": True}))
    groups = tuple(dict.fromkeys(one.group for one in tasks))
    for group in groups if len(groups) > 1 else ():
        own = [one for one in tasks if one.group == group]
        scores.append(score_tasks(own, scoring).model_copy(update={"group": group}))
        kept = [one for one in own if one.is_sound]
        if len(kept) < len(own):
            named = {"group": group, "sound_only": True}
            scores.append(score_tasks(kept, scoring).model_copy(update=named))
    return tuple(scores)


def score_tasks(tasks: Sequence[ScoredTask], scoring: Scoring) -> GroupScore:
    """Return the score of `tasks`, which may be none."""
    draws = Bootstrap(len(tasks), scoring.seed)
    speeds = [one.speedup for one in tasks]
    known = [one for one in speeds if one is not None]
    faster = [one if one is not None and one > 1.0 else None for one in speeds]

    def of_speeds(
        values: Sequence[float | None], statistic: Callable[[Rows], Numbers]
    ) -> ScoreFigure:
        return draws.figure(values, statistic) if scoring.has_speeds else UNAVAILABLE

    def fast(p: float, values: Sequence[float | None]) -> ScoreFigure:
        return of_speeds([float(one is not None and one > p) for one in values], share)

    lows = [one.speedup_low for one in tasks]
    return GroupScore(
        group=None,
        sound_only=False,
        tasks=len(tasks),
        valid=sum(one.is_valid for one in tasks),
        timed=len(known),
        valid_rate=draws.figure([float(one.is_valid) for one in tasks], share),
        fast=tuple(
            FastShare(
                p=p,
                by_estimate=fast(p, speeds),
                by_interval=fast(p, lows) if scoring.has_intervals else UNAVAILABLE,
            )
            for p in scoring.thresholds
        ),
        geomean=of_speeds(speeds, geomean),
        mean=of_speeds(speeds, mean),
        median=of_speeds(speeds, median),
        minimum=min(known, default=None),
        maximum=max(known, default=None),
        above_1x=of_speeds([None if x is None else float(x > 1.0) for x in speeds], mean),
        below_1x=of_speeds([None if x is None else float(x < 1.0) for x in speeds], mean),
        geomean_failures_1x=of_speeds([1.0 if x is None else x for x in speeds], geomean),
        geomean_above_1x=of_speeds(faster, geomean),
        median_above_1x=of_speeds(faster, median),
        sol_score=of_speeds([one.sol_score if one.is_valid else 0.0 for one in tasks], mean),
    )
