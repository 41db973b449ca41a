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

from kopt.kernels.bench_result import (
    LEAST_THRESHOLD,
    BaselinePath,
    NoiseFloor,
    RejectedBaseline,
    Rotation,
)
from kopt.kernels.roofline import workload_bytes
from kopt.tools.devices.device import Program
from kopt.tools.devices.lost_timing import begun_again
from kopt.tools.devices.timer import EmptySide, Side, TimingFacts, TimingFailure, TimingSession

from .intervals import Interval
from .kept_records import keep, load_kept
from .later_call import contents_repeat, later_call
from .measurement import Measurement, SessionPlan, measure
from .pair_order import Pairing
from .reference_side import BaselineSide, candidate_side
from .request import MIN_PAIRS, BenchRequest
from .timed_case import TimedCase, Verified, find_faulty, timing_request
from .timed_outputs import OutputInspector
from .verdict import is_impossible

_CANDIDATE, _MAIN = 0, 1


@dataclass(frozen=True)
class Contest:
    """A candidate and what it is timed against."""

    candidate: Program
    verified: Verified
    """The candidate's checked outputs."""
    witness: Verified
    """Checked outputs of the reference kernel on the same inputs."""
    baselines: tuple[BaselineSide, ...]
    """The main one first; the n-th has place n + 1 in the session."""
    rejected: tuple[RejectedBaseline, ...] = ()

    @property
    def main(self) -> BaselineSide:
        """The baseline that decides the verdict."""
        return self.baselines[0]


@dataclass(frozen=True)
class Timed:
    """A contest and what its session gave."""

    case: TimedCase
    contest: Contest
    plan: SessionPlan
    facts: TimingFacts
    measurement: Measurement
    outputs: OutputInspector
    floor: NoiseFloor | None
    """Noise floor; None where too few pairs count."""
    warm_us: float | None
    """Time of a call with a warm L2; None where the outputs are wrong."""

    @property
    def rotation(self) -> Rotation:
        """The buffer sets."""
        facts = self.facts
        return Rotation(sets=facts.sets, set_bytes=facts.set_bytes, over_l2=facts.rotation_over_l2)

    @property
    def has_too_few_pairs(self) -> bool:
        """Whether disturbed blocks left too few pairs for a verdict."""
        pairs = self.measurement.pairs(pairing_of(0))
        return pairs < self.plan.min_pairs and not self.measurement.ended_far_apart

    def interval(self, baseline: int) -> Interval | None:
        """Return the interval against the n-th baseline of the contest."""
        return self.measurement.interval(pairing_of(baseline), self.plan.seed)

    def times_us(self, place: int) -> list[float]:
        """Return the times of one side; empty where no block counts."""
        return self.measurement.us_per_call.get(place, [])

    def is_impossible(self, place: int) -> bool:
        """Return whether the median of a side is below what the memory allows."""
        times = self.times_us(place)
        model = workload_bytes(self.case.problem, self.case.workload)
        return bool(times) and is_impossible(
            float(np.median(times)), model, self.case.gpu, self.rotation
        )


def pairing_of(baseline: int) -> Pairing:
    """Return the comparison with the n-th baseline of the contest."""
    return Pairing(_CANDIDATE, _MAIN + baseline)


@begun_again
def time_side_by_side(
    case: TimedCase, contest: Contest, asked: BenchRequest
) -> Timed | TimingFailure:
    """Return the times of all sides, or the failure of one.

    Side 0 is the candidate, n + 1 the n-th baseline.

    Raises:
        InfraError: The device failed, or a failure can be pinned on no side.
        SetupError: KOPT_HOME cannot be written.
    """
    floor = known_floor(case, contest.main.path)
    sides: list[Side] = [candidate_side(contest.candidate)]
    sides += (entry.side for entry in contest.baselines)
    noise: Pairing | None = None
    if floor is None:
        noise = Pairing(len(sides), _MAIN)
        sides.append(contest.main.side)
    plan = SessionPlan(
        main=pairing_of(0),
        others=tuple(pairing_of(n + 1) for n in range(len(contest.baselines) - 1)),
        noise=noise,
        empty=len(sides),
        min_pairs=asked.min_pairs,
        max_pairs=asked.max_pairs,
        may_end_early=asked.may_end_early,
        threshold=LEAST_THRESHOLD if floor is None else floor.threshold,
        seed=case.seed,
    )
    sides.append(EmptySide(plan=contest.candidate.plan))
    request = timing_request(case, tuple(sides))
    with case.device.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            timed: Timed | TimingFailure = session
        else:
            timed = _timed(session, case, contest, plan, floor)
    if isinstance(timed, Timed):
        return timed
    failure = find_faulty(request, timed, case.device)
    is_copy = noise is not None and failure.side == noise.candidate
    return TimingFailure(_MAIN, failure.outcome) if is_copy else failure


def _timed(
    session: TimingSession,
    case: TimedCase,
    contest: Contest,
    plan: SessionPlan,
    floor: NoiseFloor | None,
) -> Timed | TimingFailure:
    inspector = OutputInspector(case, contest.verified, np.random.default_rng(case.seed))
    measurement = measure(session, plan, inspector.inspect)
    if isinstance(measurement, TimingFailure):
        return measurement
    warm_us: float | None = None
    if inspector.finding is None:
        warm = session.warm_us(_CANDIDATE)
        if isinstance(warm, TimingFailure):
            return warm
        warm_us = warm
        if contents_repeat(case, session):
            later = later_call(case, contest.candidate, session)
            if isinstance(later, TimingFailure):
                return later
            inspector.finding = later
    if plan.noise is not None:
        interval = measurement.interval(plan.noise, plan.seed)
        pairs = measurement.pairs(plan.noise)
        if interval is not None and (pairs >= MIN_PAIRS or measurement.ended_far_apart):
            floor = fresh_floor(interval, pairs)
            keep_floor(case, contest.main.path, floor)
    return Timed(case, contest, plan, session.facts, measurement, inspector, floor, warm_us)


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
    """Keep a fresh floor, unless it is too wide to be the device's own, or of few pairs.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    if floor.threshold <= _WIDEST_KEPT and floor.pairs >= MIN_PAIRS:
        keep(case.settings, _key(case, path), floor)


def _key(case: TimedCase, path: BaselinePath) -> dict[str, str]:
    return case.key("noise_floor/1", baseline=path.name, pdl=str(path.pdl))
