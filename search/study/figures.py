"""The figures of one arm of a study, each with its interval: speed, cost of the target, duels.

Speeds are averaged as ratios, geometrically. Runs that reach nothing stay in every figure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from statistics import fmean
from typing import Literal

from kopt.kernels.record import Record

from .outcome import RunOutcome
from .study_statistics import Place, Reach, RunGrid, cost_per_success, interval_of, median_cost

Quantity = Literal["candidates", "tokens", "usd"]
Outcomes = Mapping[Place, RunOutcome]
"""Outcomes of one arm, by kernel and repeat."""
Places = Sequence[Place]


class Figure(Record):
    """A number with what is known of its uncertainty."""

    value: float | None
    """None: infinite, because no run reached the target; or without anything to compute it of."""
    interval: tuple[float | None, float | None] | None
    """95 %, by drawing kernels and repeats anew. None for an end: it is infinite. None for all: of
    a single run, or of too few."""


class TargetCost(Record):
    """The cost of reaching the target, in one quantity."""

    per_success: Figure
    """Cost of all runs, up to the target or their end, per run that reached it."""
    median: Figure
    """Cost within which half of the runs reach it; runs that their budget cut are censored."""
    ratio: Figure | None
    """`per_success` over that of the reference; None for the reference itself."""


class Duels(Record):
    """Runs of an arm against those of the reference on the same kernel in the same repeat."""

    wins: int
    losses: int
    inconclusive: int
    """Neither is faster by more than noise: intervals overlap, or the change is too small."""


@dataclass(frozen=True)
class Ground:
    """The grid, seed and least effect that all figures of a study share."""

    grid: RunGrid
    seed: int
    min_effect: float
    """A smaller change of speed is none."""


def speed_figure(outcomes: Outcomes, ground: Ground, reference: Outcomes | None = None) -> Figure:
    """Return the geometric mean of the speeds, over the reference's on the same places if given."""

    def speed(places: Places) -> float | None:
        found = (_speed(outcomes, reference, place) for place in places)
        logs = [log(value) for value in found if value]
        return exp(fmean(logs)) if logs else None

    return _figure(speed, ground)


def target_cost(
    quantity: Quantity, outcomes: Outcomes, reference: Outcomes | None, ground: Ground
) -> TargetCost:
    """Return what reaching the target cost; `reference` None: of the reference itself."""

    def reaches(of: Outcomes, places: Places) -> list[Reach]:
        targets = [of[place].target for place in places if place in of]
        return [Reach(float(getattr(one, quantity)), one.ending) for one in targets]

    def mean(places: Places) -> float | None:
        found = reaches(outcomes, places)
        return cost_per_success(found) if found else None

    def median(places: Places) -> float | None:
        found = reaches(outcomes, places)
        return median_cost(found) if found else None

    def ratio(places: Places) -> float | None:
        if reference is None:
            return None
        own, other = reaches(outcomes, places), reaches(reference, places)
        below = cost_per_success(other) if other else 0.0
        return cost_per_success(own) / below if own and isfinite(below) and below else None

    return TargetCost(
        per_success=_figure(mean, ground),
        median=_figure(median, ground),
        ratio=None if reference is None else _figure(ratio, ground),
    )


def duels(outcomes: Outcomes, reference: Outcomes, ground: Ground) -> Duels:
    """Return how often a run was faster than the reference's on the same place, and slower."""
    both = [place for place in ground.grid.places if place in outcomes and place in reference]
    verdicts = [_duel(outcomes[place], reference[place], ground.min_effect) for place in both]
    return Duels(wins=verdicts.count(1), losses=verdicts.count(-1), inconclusive=verdicts.count(0))


def log_speedup_per_mtok(outcomes: Outcomes) -> float | None:
    """Return ln(speed over the start) per million tokens, over all runs; None without tokens."""
    tokens = sum(one.tokens for one in outcomes.values())
    gain = sum(log(one.ratio) for one in outcomes.values() if one.ratio)
    return gain / (tokens / 1e6) if tokens else None


def _duel(one: RunOutcome, other: RunOutcome, min_effect: float) -> int:
    """Return 1 if `one` is surely the faster, -1 for the other, 0 if that cannot be told."""
    if one.speed is None or other.speed is None:
        return 0
    if abs(log(one.speed / other.speed)) <= log(1.0 + min_effect):
        return 0
    faster, slower = (one, other) if one.speed > other.speed else (other, one)
    is_sure = _ends(faster)[0] > _ends(slower)[1]
    return (1 if faster is one else -1) if is_sure else 0


def _ends(one: RunOutcome) -> tuple[float, float]:
    return one.speed_interval or (one.speed or 0.0, one.speed or 0.0)


def _speed(outcomes: Outcomes, reference: Outcomes | None, place: Place) -> float | None:
    """Return the speed of a run, over that of the reference's if there is one."""
    speed = outcomes[place].speed if place in outcomes else None
    if reference is None or speed is None:
        return speed
    other = reference[place].speed if place in reference else None
    return speed / other if other else None


def _figure(compute: Callable[[Places], float | None], ground: Ground) -> Figure:
    interval = interval_of(compute, ground.grid, ground.seed)
    ends = None if interval is None else (_finite(interval[0]), _finite(interval[1]))
    return Figure(value=_finite(compute(ground.grid.places)), interval=ends)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
