"""One timing session: the candidate, its baselines, a second capture and empty kernels.

It joins places and names: `measurement.py` knows places only, results know names only. The noise
floor, how far the baseline is from a second capture of itself, is measured in the session that
first needs it and kept for a day for the device, driver, kernel and baseline path. No floor is
below what counts as a difference at all (`LEAST_THRESHOLD`), so that a lucky one makes nothing
faster; a wide one, as beside a neighbor's work, is used but not kept.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from kopt.kernels.bench_result import LEAST_THRESHOLD, BaselinePath, NoiseFloor
from kopt.tools.devices.timer import EmptySide, Side, TimingFacts, TimingFailure, TimingSession

from .intervals import Interval
from .kept_records import keep, load_kept
from .measurement import Limits, Measurement, Sides, measure
from .pairs import Pairing
from .reference_side import PlannedSide
from .request import MIN_PAIRS
from .timed_case import TimedCase, Verified, find_faulty, timing_request
from .timed_outputs import OutputInspector

_CANDIDATE, _MAIN = 0, 1


@dataclass(frozen=True)
class BaselineSide:
    """A baseline with its name in results."""

    path: BaselinePath
    side: Side
    differences: tuple[str, ...] = ()
    """Why it is not like for like, as far as is known before it is captured."""


@dataclass(frozen=True)
class Contest:
    """Who is timed against whom."""

    candidate: PlannedSide
    verified: Verified
    """The candidate's checked outputs."""
    main: BaselineSide
    others: tuple[BaselineSide, ...] = ()

    @property
    def baselines(self) -> tuple[BaselineSide, ...]:
        """The main one first; the n-th has place n + 1 in the session."""
        return (self.main, *self.others)


@dataclass(frozen=True)
class Timed:
    """What a session gave."""

    facts: TimingFacts
    measurement: Measurement
    outputs: OutputInspector
    floor: NoiseFloor | None
    """None where too few pairs count."""
    limits: Limits
    warm_us: float | None
    """None where the outputs are wrong."""
    empty: int

    def interval(self, baseline: int) -> Interval | None:
        """Return the interval against the n-th baseline of the contest."""
        return self.measurement.interval(pairing_of(baseline), self.limits.seed)


def pairing_of(baseline: int) -> Pairing:
    """Return the comparison with the n-th baseline of the contest."""
    return Pairing(_CANDIDATE, _MAIN + baseline)


def time_side_by_side(
    case: TimedCase, contest: Contest, pairs: tuple[int, int]
) -> Timed | TimingFailure:
    """Return the times of all sides, or the failure of one of them.

    Args:
        case: Device, workload and inputs.
        contest: What to time.
        pairs: Least and most pairs.

    Returns:
        A failure has its side: 0 is the candidate, n + 1 the n-th baseline.

    Raises:
        InfraError: The device failed, or a failure can be pinned on no side.
        SetupError: KOPT_HOME cannot be written.
    """
    floor = known_floor(case, contest.main.path)
    sides: list[Side] = [contest.candidate.side, *(entry.side for entry in contest.baselines)]
    noise: Pairing | None = None
    if floor is None:
        noise = Pairing(len(sides), _MAIN)
        sides.append(contest.main.side)
    places = Sides(
        main=pairing_of(0),
        others=tuple(pairing_of(n + 1) for n in range(len(contest.others))),
        noise=noise,
        empty=len(sides),
    )
    sides.append(EmptySide(plan=contest.candidate.program.plan))
    threshold = LEAST_THRESHOLD if floor is None else floor.threshold
    limits = Limits(*pairs, threshold=threshold, seed=case.seed)
    request = timing_request(case, contest.verified.data, tuple(sides))
    with case.device.open_timing(request) as session:
        timed = (
            session
            if isinstance(session, TimingFailure)
            else _timed(session, case, contest, (places, limits, floor))
        )
    if isinstance(timed, Timed):
        return timed
    failure = find_faulty(request, timed, case.device)
    is_copy = noise is not None and failure.side == noise.candidate
    return TimingFailure(_MAIN, failure.outcome) if is_copy else failure


def _timed(
    session: TimingSession,
    case: TimedCase,
    contest: Contest,
    plan: tuple[Sides, Limits, NoiseFloor | None],
) -> Timed | TimingFailure:
    places, limits, floor = plan
    inspector = OutputInspector(case, contest.verified, np.random.default_rng(case.seed))
    measurement = measure(session, places, limits, inspector.inspect)
    if isinstance(measurement, TimingFailure):
        return measurement
    warm_us: float | None = None
    if inspector.finding is None:
        warm = session.warm_us(_CANDIDATE)
        if isinstance(warm, TimingFailure):
            return warm
        warm_us = warm
    if places.noise is not None:
        interval = measurement.interval(places.noise, limits.seed)
        if interval is not None and measurement.pairs(places.noise) >= MIN_PAIRS:
            floor = fresh_floor(interval, measurement.pairs(places.noise))
            keep_floor(case, contest.main.path, floor)
    return Timed(
        facts=session.facts,
        measurement=measurement,
        outputs=inspector,
        floor=floor,
        limits=limits,
        warm_us=warm_us,
        empty=places.empty,
    )


_WIDEST_KEPT = 0.01


def known_floor(case: TimedCase, path: BaselinePath) -> NoiseFloor | None:
    """Return the floor that was measured within the last day, or None."""
    kept = load_kept(case.settings, _key(case, path), NoiseFloor)
    return None if kept is None else kept.model_copy(update={"cached": True})


def fresh_floor(interval: Interval, pairs: int) -> NoiseFloor:
    """Return the floor of an A/A comparison that has just ended."""
    return NoiseFloor(
        median=interval.median,
        half_width=interval.half_width,
        pairs=pairs,
        cached=False,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def keep_floor(case: TimedCase, path: BaselinePath, floor: NoiseFloor) -> None:
    """Keep a fresh floor, unless it is too wide to be the device's own.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    if floor.threshold <= _WIDEST_KEPT:
        keep(case.settings, _key(case, path), floor)


def _key(case: TimedCase, path: BaselinePath) -> dict[str, str]:
    facts = case.device.facts
    return {
        "kind": "noise_floor/1",
        "device": facts.uuid,
        "driver": facts.driver_version,
        "kernel": case.kernel,
        "baseline": path.name,
        "pdl": str(path.pdl),
    }
