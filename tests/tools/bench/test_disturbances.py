"""What throttling, clocks and the power limit do to a benchmark, over a scripted timing device."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.devices.timer import Telemetry
from support.bench_cases import CANDIDATE, FakeCompiler
from support.scripted_timer import QUIET, Script, ScriptedTimer


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)


def test_blocks_that_throttle_are_replaced(request_: BenchRequest, settings: Settings) -> None:
    hot = Telemetry(sm_mhz=1980, memory_mhz=2619, throttle=("hw_thermal_slowdown",))
    cool = Telemetry(sm_mhz=1980, memory_mhz=2619)
    telemetry = {3: hot, 4: hot}
    timer = ScriptedTimer(Script(noise=QUIET, telemetry=lambda block: telemetry.get(block, cool)))
    result = bench_candidate(request_, timer, settings)
    (comparison,) = result.comparisons
    assert (comparison.pairs, comparison.dropped_pairs) == (100, 8)
    assert result.verdict is Verdict.FASTER
    assert result.state is not None
    assert result.state.throttle == ("hw_thermal_slowdown",)


def test_a_clock_that_changes_within_a_block_drops_it(
    request_: BenchRequest, settings: Settings
) -> None:
    def telemetry(block: int) -> Telemetry:
        return Telemetry(sm_mhz=1700 if block == 2 else 1980, memory_mhz=2619)

    result = bench_candidate(request_, ScriptedTimer(Script(telemetry=telemetry)), settings)
    assert result.comparisons[0].dropped_pairs == 4


def test_a_device_that_throttles_all_the_time_gives_no_verdict(
    request_: BenchRequest, settings: Settings
) -> None:
    hot = Telemetry(throttle=("hw_slowdown",))
    timer = ScriptedTimer(Script(candidate_us=1.0, telemetry=lambda block: hot))
    result = bench_candidate(request_, timer, settings)
    (comparison,) = result.comparisons
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.INCONCLUSIVE)
    assert (comparison.speedup, comparison.pairs, comparison.noise_floor) == (None, 0, None)
    assert any("disturbed" in note.message for note in result.diagnostics)
    assert len(timer.replayed) < 50


@pytest.mark.parametrize(
    ("alone_us", "verdict"),
    [(None, Verdict.FASTER), (4.97, Verdict.INCONCLUSIVE), (5.1, Verdict.INCONCLUSIVE)],
)
def test_faster_at_the_power_limit_is_faster_alone_too(
    alone_us: float | None, verdict: Verdict, request_: BenchRequest, settings: Settings
) -> None:
    capped = Telemetry(sm_mhz=1975, memory_mhz=2619, throttle=("sw_power_cap",))
    script = Script(candidate_alone_us=alone_us, noise=QUIET, telemetry=lambda block: capped)
    result = bench_candidate(request_, ScriptedTimer(script), settings)
    (comparison,) = result.comparisons
    assert (result.verdict, comparison.verdict) == (verdict, verdict)
    assert (comparison.pairs, comparison.dropped_pairs) == (100, 0)
    assert any("alone" in note.message for note in result.diagnostics) == (alone_us is not None)


def test_sides_that_cannot_be_timed_alone_leave_the_pairs_without_a_verdict(
    request_: BenchRequest, settings: Settings
) -> None:
    def telemetry(block: int) -> Telemetry:
        del block
        reason = "sw_power_cap" if len(timer.sessions) == 1 else "hw_slowdown"
        return Telemetry(sm_mhz=1975, memory_mhz=2619, throttle=(reason,))

    timer = ScriptedTimer(Script(noise=QUIET, telemetry=telemetry))
    result = bench_candidate(request_, timer, settings)
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.INCONCLUSIVE)
    assert result.comparisons[0].speedup == pytest.approx(1.25)
    assert any("alone" in note.message for note in result.diagnostics)


def test_too_few_undisturbed_pairs_give_a_ratio_but_no_verdict(
    request_: BenchRequest, settings: Settings
) -> None:
    def telemetry(block: int) -> Telemetry:
        # 20 blocks that count, and the one that is broken off for a look at outputs.
        return Telemetry(throttle=() if block < 21 else ("hw_slowdown",))

    timer = ScriptedTimer(Script(candidate_us=2.0, noise=QUIET, telemetry=telemetry))
    (comparison,) = bench_candidate(request_, timer, settings).comparisons
    assert (comparison.pairs, comparison.verdict) == (80, Verdict.INCONCLUSIVE)
    assert comparison.speedup == pytest.approx(2.5)


def test_a_known_floor_does_not_make_too_few_pairs_enough(
    request_: BenchRequest, settings: Settings
) -> None:
    bench_candidate(request_, ScriptedTimer(Script(noise=QUIET)), settings)

    def telemetry(block: int) -> Telemetry:
        # 20 blocks that count, and the one that is broken off for a look at outputs.
        return Telemetry(throttle=() if block < 21 else ("hw_slowdown",))

    timer = ScriptedTimer(Script(candidate_us=2.0, noise=QUIET, telemetry=telemetry))
    (comparison,) = bench_candidate(request_, timer, settings).comparisons
    assert comparison.noise_floor is not None
    assert comparison.noise_floor.cached
    assert comparison.verdict is Verdict.INCONCLUSIVE
