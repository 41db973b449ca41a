"""Whether the same candidates have the same speeds on other GPUs; what `bench_pool.py` compares.

Two measurements of a candidate agree where ln of their ratio is at most the root of the sum of the
squares of their half-widths, of the 95 % intervals on the sides that face each other: if nothing
but the noise within sessions tells them apart, 95 of 100 do. Widened, the noise floors of both are
in that sum: what one session differs from the next by. How many of n agree varies: `least_agreeing`
is the number below which chance alone falls once in a hundred times.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb, exp, hypot, log

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.status import Status, Verdict
from kopt.search.records.evaluation import NOISE_FLOOR, Evaluation
from kopt.search.storage.artifacts import ArtifactStore

EXPECTED = 0.95
"""The share that agrees where nothing but noise tells two measurements apart."""
_CHANCE = 0.01
_OPPOSITE = {Verdict.FASTER, Verdict.SLOWER}


@dataclass(frozen=True)
class SpeedReading:
    """One evaluation of a candidate, as far as it is compared."""

    candidate: int
    """Its number within the sweep."""
    status: Status
    speed: float | None
    """The speedup; 1 / the time where that is an estimate; None where there is neither."""
    interval: tuple[float, float] | None = None
    """95 % interval of it; None for an estimate."""
    floor: float = 0.0
    """The least log ratio that was told from none in the same measurement."""
    unit: str = ""
    """The baseline that the candidate was compared with."""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class AgreementCount:
    """How measurements compare with those of one GPU."""

    compared: int
    within: int
    """How many agree within their intervals."""
    widened: int
    """How many agree within their intervals and noise floors."""
    same_verdict: int
    opposite: int
    """How many are faster here and slower there."""
    largest_percent: float
    """The largest difference of two speeds, in percent."""
    not_compared: int
    """How many were timed against another baseline, or passed in one of both only."""


def read_evaluation(candidate: int, found: Evaluation, artifacts: ArtifactStore) -> SpeedReading:
    """Return what is compared of an evaluation.

    Raises:
        InfraError: The result of its benchmark is gone.
    """
    floor = found.metric(NOISE_FLOOR)
    floor_ratio = 0.0 if floor is None or floor.value is None else floor.value
    bench = bench_of(found, artifacts)
    if bench is None:
        cost = found.cost
        speed = None if cost is None else 1.0 / cost
        return SpeedReading(candidate, found.status, speed, floor=floor_ratio)
    return SpeedReading(
        candidate,
        found.status,
        speed=None if found.speedup is None else found.speedup.value,
        interval=found.speedup_interval,
        floor=floor_ratio,
        unit="" if found.speedup is None else found.speedup.unit,
        verdict=bench.verdict,
    )


def bench_of(found: Evaluation, artifacts: ArtifactStore) -> BenchResult | None:
    """Return the benchmark of the named workload; None where nothing was timed.

    Raises:
        InfraError: It is gone.
    """
    sha = found.artifacts.get("bench")
    return None if sha is None else BenchResult.model_validate_json(artifacts.get(sha))


def agreement(
    alone: Mapping[int, SpeedReading], readings: Iterable[SpeedReading]
) -> AgreementCount:
    """Return how `readings` compare with those of one GPU, by candidate."""
    pairs = [(alone[one.candidate], one) for one in readings if one.candidate in alone]
    compared = [pair for pair in pairs if _compares(*pair)]
    timed = [(a, b) for a, b in compared if a.speed and b.speed]
    failed = len(compared) - len(timed)
    opposite = sum({a.verdict, b.verdict} == _OPPOSITE for a, b in compared)
    return AgreementCount(
        compared=len(compared),
        within=failed + sum(_agrees(a, b, with_floors=False) for a, b in timed),
        widened=failed + sum(_agrees(a, b, with_floors=True) for a, b in timed),
        same_verdict=sum(a.verdict == b.verdict for a, b in compared),
        opposite=opposite,
        largest_percent=max((100 * (exp(_distance(a, b)) - 1) for a, b in timed), default=0.0),
        not_compared=len(pairs) - len(compared),
    )


def least_agreeing(count: int) -> int:
    """Return the least number of `count` that is no surprise where 95 of 100 agree."""
    below, least = 0.0, 0
    while least < count:
        below += comb(count, least) * EXPECTED**least * (1 - EXPECTED) ** (count - least)
        if below > _CHANCE:
            break
        least += 1
    return least


def _compares(one: SpeedReading, other: SpeedReading) -> bool:
    """Return whether both have a speed over the same, or failed alike."""
    is_timed = bool(one.speed)
    return (one.status, one.unit, is_timed) == (other.status, other.unit, bool(other.speed))


def _agrees(one: SpeedReading, other: SpeedReading, *, with_floors: bool) -> bool:
    low, high = sorted((one, other), key=lambda reading: reading.speed or 0.0)
    allowed = hypot(_half_width(low, 1), _half_width(high, 0))
    if with_floors:
        allowed = hypot(allowed, low.floor, high.floor)
    return _distance(low, high) <= allowed


def _half_width(reading: SpeedReading, side: int) -> float:
    """Return ln of an end of the interval over the speed, 0 or more; 0 of an estimate."""
    if reading.interval is None or not reading.speed or reading.interval[side] <= 0:
        return 0.0
    return abs(log(reading.interval[side] / reading.speed))


def _distance(one: SpeedReading, other: SpeedReading) -> float:
    assert one.speed and other.speed  # of those that were timed
    return abs(log(one.speed / other.speed))
