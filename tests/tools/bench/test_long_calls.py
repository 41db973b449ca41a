"""Kernels that take milliseconds: fewer pairs, where nothing can turn the comparison."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Verdict
from kopt.tools.bench.measurement import OTHER_PAIRS, Measurement, SessionPlan, measure
from kopt.tools.bench.pair_order import PAIRS_PER_BLOCK, Pairing
from kopt.tools.bench.request import MIN_PAIRS, BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.devices.timer import Replays, SetOutputs, SideFacts, Telemetry, TimingFacts
from support.bench_cases import CANDIDATE, FakeCompiler
from support.scripted_timer import QUIET, Noise, Script, ScriptedTimer

LONG = Script(candidate_us=9000.0, reference_us=5000.0, noise=Noise(drift=0.0, outliers=0.0))


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)


def _pairs(timer: ScriptedTimer, request: BenchRequest, settings: Settings) -> tuple[int, Verdict]:
    result = bench_candidate(request, timer, settings)
    (comparison,) = result.comparisons
    return comparison.pairs, comparison.verdict


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_long_kernel_that_is_far_off_is_judged_by_few_pairs(
    request_: BenchRequest, settings: Settings, factor: float
) -> None:
    timer = ScriptedTimer(replace(LONG, candidate_us=5000.0 * factor))
    verdict = Verdict.FASTER if factor < 1 else Verdict.SLOWER
    assert _pairs(timer, request_, settings) == (OTHER_PAIRS, verdict)


def test_a_long_kernel_that_is_close_has_all_pairs(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(replace(LONG, candidate_us=5100.0, noise=QUIET))
    assert _pairs(timer, request_, settings) == (MIN_PAIRS, Verdict.SLOWER)


def test_a_short_kernel_has_all_pairs_however_far_off(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(replace(LONG, candidate_us=9.0, reference_us=5.0))
    assert _pairs(timer, request_, settings) == (MIN_PAIRS, Verdict.SLOWER)


def test_what_a_receipt_may_follow_has_all_pairs(
    request_: BenchRequest, settings: Settings
) -> None:
    asked = replace(request_, may_end_early=False)
    assert _pairs(ScriptedTimer(LONG), asked, settings) == (MIN_PAIRS, Verdict.SLOWER)


def test_a_comparison_that_is_close_keeps_all_pairs_of_the_others(problem: Problem) -> None:
    far, close, noise = Pairing(0, 1), Pairing(2, 1), Pairing(3, 1)
    plan = SessionPlan(
        main=far, others=(close,), empty=4, min_pairs=100, max_pairs=100, seed=0, may_end_early=True
    )
    session = _LongSession((9000.0, 5000.0, 5010.0, 5000.0, 1.0))
    found = measure(session, plan, lambda outputs: True)
    assert isinstance(found, Measurement)
    assert (found.pairs(far), found.ended_far_apart) == (100, False)
    alone = measure(session, replace(plan, others=(), noise=noise), lambda outputs: True)
    assert isinstance(alone, Measurement)
    assert (alone.pairs(far), alone.ended_far_apart) == (OTHER_PAIRS, True)


class _LongSession:
    """Sides that take as long as it is told, without noise."""

    def __init__(self, times_us: tuple[float, ...]) -> None:
        self._times_us = times_us
        sides = tuple(SideFacts(nodes_per_call=1.0, call_us=one) for one in times_us)
        self.facts = TimingFacts(sets=2, set_bytes=1 << 20, rotation_over_l2=4.0, sides=sides)

    def replay(self, sequence: Sequence[int]) -> Replays:
        return Replays(us_per_call=tuple(self._times_us[place] for place in sequence))

    def collect(self, places: Sequence[int] | None = None) -> SetOutputs:
        del places
        return SetOutputs(rotations=(), outputs=())

    def warm_us(self, side: int) -> float:
        return self._times_us[side]


def test_disturbances_at_the_beginning_leave_time_for_more_pairs(
    request_: BenchRequest, settings: Settings
) -> None:
    def hot_at_first(block: int) -> Telemetry:
        return Telemetry(sm_mhz=1980, throttle=("hw_slowdown",) if block < 4 else ())

    timer = ScriptedTimer(replace(LONG, telemetry=hot_at_first))
    assert _pairs(timer, request_, settings) == (MIN_PAIRS, Verdict.SLOWER)


@pytest.mark.slow  # a measurement for each of twelve seeds
@pytest.mark.parametrize("candidate_us", [9000.0, 5100.0])
def test_outputs_are_looked_at_within_the_few_pairs_at_a_place_nobody_knows(
    request_: BenchRequest, settings: Settings, candidate_us: float
) -> None:
    blocks, is_long = OTHER_PAIRS // PAIRS_PER_BLOCK, candidate_us > 6000.0
    early: set[tuple[int, int]] = set()
    for seed in range(12):
        timer = ScriptedTimer(replace(LONG, candidate_us=candidate_us, noise=QUIET))
        bench_candidate(replace(request_, seed=seed), timer, settings)
        first, *others = timer.collected_after
        assert 1 < first <= blocks
        assert len(others) == (1 if is_long else 2)
        early.add((first, len(timer.replayed[first - 1])))
    assert len(early) > 6


def test_a_floor_of_few_pairs_is_not_kept(
    request_: BenchRequest, settings: Settings, tmp_path: Path
) -> None:
    alone = replace(settings, home=tmp_path / "home")
    floors = [
        bench_candidate(request_, ScriptedTimer(LONG), alone).comparisons[0].noise_floor
        for _ in range(2)
    ]
    assert [(one.pairs, one.cached) for one in floors if one is not None] == [
        (OTHER_PAIRS, False)
    ] * 2
