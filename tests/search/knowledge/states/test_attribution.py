"""What a candidate teaches: its gain over the program that it changed, told once."""

from dataclasses import replace
from math import hypot, log
from typing import Any

import pytest

from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.records import ProfileSignature
from kopt.search.knowledge.states.attribution import Placed, make_samples
from kopt.search.records.evaluation import NOISE_FLOOR
from support.populations import failed, passed, timed, with_value
from support.taught_runs import ON_GPU, ON_SIM, made, row, start, taught, told

SEEN = ProfileSignature(bottleneck="memory_bound", provenance=Provenance.ESTIMATED)


def test_faster_candidate_teaches_its_gain() -> None:
    (sample,) = taught(start(), made(1, passed(8.0), "aa"))
    assert told([sample]) == [("run-1/1", ("aa",), "gained")]
    assert sample.measured == pytest.approx(log(10 / 8))
    assert (sample.interval, sample.provenance) == (None, Provenance.ESTIMATED)
    assert (sample.before, sample.after, sample.status) == ("s0", "s1", Status.PASSED)


def test_slower_candidate_teaches_its_loss() -> None:
    (sample,) = taught(start(), made(1, passed(12.5), "aa"))
    assert sample.outcome == "lost"
    assert sample.measured == pytest.approx(log(10 / 12.5))


def test_interval_of_a_measured_gain_is_of_both_measurements() -> None:
    (sample,) = taught(start(timed(9.0, 1.0)), made(1, timed(7.5, 1.2), "aa"), context=ON_GPU)
    below = hypot(log(1.2 / 1.195), log(1.005 / 1.0))
    above = hypot(log(1.205 / 1.2), log(1.0 / 0.995))
    assert sample.interval == pytest.approx((log(1.2) - below, log(1.2) + above))
    assert (sample.outcome, sample.provenance) == ("gained", Provenance.MEASURED)


@pytest.mark.parametrize(
    ("speedup", "half_width", "outcome"),
    [
        (1.019, 0.001, "within_noise"),
        (1.021, 0.001, "gained"),
        (0.97, 0.001, "lost"),
        (1.2, 0.25, "within_noise"),
        (0.8, 0.25, "within_noise"),
    ],
)
def test_change_that_noise_could_explain_is_within_noise(
    speedup: float, half_width: float, outcome: str
) -> None:
    child = made(1, timed(9.0, speedup, half_width=half_width), "aa")
    (sample,) = taught(start(timed(9.0, 1.0, half_width=0.001)), child, context=ON_GPU)
    assert sample.outcome == outcome
    assert sample.measured == pytest.approx(log(speedup))


def test_noise_of_the_device_decides_beside_the_least_effect() -> None:
    noisy = with_value(timed(9.0, 1.05, half_width=0.001), NOISE_FLOOR, 0.06)
    (sample,) = taught(start(timed(9.0, 1.0)), made(1, noisy, "aa"), context=ON_GPU)
    assert sample.outcome == "within_noise"


def test_speedups_over_different_baselines_teach_nothing() -> None:
    child = made(1, timed(9.0, 1.5, baseline="reference"), "aa")
    assert taught(start(timed(9.0, 1.0)), child, context=ON_GPU) == ()


def test_estimate_is_not_compared_with_a_measurement() -> None:
    assert taught(start(timed(9.0, 1.0)), made(1, passed(1.0), "aa"), context=ON_GPU) == ()


@pytest.mark.parametrize(
    "child", [made(1, passed(8.0)), made(1, None, "aa"), made(1, passed(8.0), *"abcde")]
)
def test_nameless_unevaluated_or_boundless_change_teaches_nothing(child: Any) -> None:
    assert taught(start(), child) == ()


def test_open_branch_has_taught_nothing_yet() -> None:
    child = made(1, passed(8.0), "aa")
    rows = [row("r1/b1", state="open")]
    assert make_samples((start(), child), rows, ON_SIM) == ()


def test_fixed_candidate_is_compared_with_the_parent_of_its_branch() -> None:
    broken = made(1, failed(Status.COMPILE_ERROR), "aa")
    mended = made(2, passed(8.0), "aa", branch="r1/b1", attempt=1, lineage="fix", parents=(1,))
    (sample,) = taught(start(), broken, mended)
    assert told([sample]) == [("run-1/2", ("aa",), "gained")]
    assert sample.before == "s0"


def test_branch_that_never_worked_failed_once() -> None:
    first = made(1, failed(Status.COMPILE_ERROR), "aa")
    last = made(2, failed(), "aa", branch="r1/b1", attempt=1, lineage="fix", parents=(1,))
    (sample,) = taught(start(), first, last)
    assert told([sample]) == [("run-1/2", ("aa",), "failed")]
    assert (sample.measured, sample.status) == (None, Status.INCORRECT)
    assert sample.provenance is Provenance.ESTIMATED


def test_failure_on_a_gpu_counts_among_what_is_measured_there() -> None:
    (sample,) = taught(start(timed(9.0, 1.0)), made(1, failed(), "aa"), context=ON_GPU)
    assert sample.provenance is Provenance.MEASURED


def test_what_the_simulator_cannot_run_says_nothing_about_the_technique() -> None:
    assert taught(start(), made(1, failed(Status.UNSUPPORTED_ON_SIM), "aa")) == ()


def test_repair_that_breaks_a_slow_candidate_leaves_the_slow_one() -> None:
    slow = made(1, passed(12.0), "aa")
    broken = made(2, failed(), "aa", branch="r1/b1", attempt=1, lineage="fix", parents=(1,))
    assert told(taught(start(), slow, broken)) == [("run-1/1", ("aa",), "lost")]


def test_retry_of_a_failure_is_a_change_of_what_that_one_changed() -> None:
    broken = made(1, failed(), "aa")
    again = made(2, passed(8.0), "aa", round=2, branch="r2/b0", lineage="fix", parents=(1,))
    samples = taught(start(), broken, again)
    assert told(samples) == [("run-1/1", ("aa",), "failed"), ("run-1/2", ("aa",), "gained")]
    assert samples[1].before == "s0"


def test_merge_teaches_what_the_other_parent_brings_in() -> None:
    one, other = made(1, passed(8.0), "aa"), made(2, passed(9.0), "bb")
    merge = made(3, passed(7.0), round=2, branch="r2/b0", lineage="cross", parents=(1, 2))
    sample = taught(start(), one, other, merge)[-1]
    assert told([sample]) == [("run-1/3", ("bb",), "gained")]
    assert (sample.before, sample.previous) == ("s1", "aa")


def test_merge_that_brings_in_a_whole_line_is_a_composite() -> None:
    one, other = made(1, passed(8.0), "aa"), made(2, passed(9.0), "bb")
    later = made(3, passed(8.5), "cc", round=2, branch="r2/b0", parents=(2,))
    merge = made(4, passed(7.0), round=3, branch="r3/b0", lineage="combine", parents=(1, 3))
    sample = taught(start(), one, other, later, merge)[-1]
    assert told([sample]) == [("run-1/4", ("bb", "cc"), "gained")]


def test_technique_before_is_the_one_that_made_the_parent() -> None:
    first = made(1, passed(8.0), "aa")
    second = made(2, passed(7.0), "bb", round=2, branch="r2/b0", parents=(1,))
    assert [one.previous for one in taught(start(), first, second)] == [None, "aa"]


def test_state_is_that_of_the_profiled_program_before() -> None:
    context = replace(ON_SIM, placed={0: Placed("dram_saturated", SEEN)})
    (sample,) = taught(start(), made(1, passed(8.0), "aa"), context=context)
    assert (sample.state, sample.signature_before) == ("dram_saturated", SEEN)
    assert sample.signature_after is None


def test_state_of_an_equal_program_counts_for_one_that_was_not_profiled() -> None:
    context = replace(ON_SIM, placed={1: Placed("dram_saturated", SEEN)})
    first, same = made(1, passed(8.0, "p"), "aa"), made(2, passed(8.0, "p"), "bb")
    child = made(3, passed(7.0), "cc", round=2, branch="r2/b0", parents=(2,))
    assert taught(start(), first, same, child, context=context)[-1].state == "dram_saturated"


@pytest.mark.parametrize(("planned", "state"), [("spilling", "spilling"), (None, "unknown")])
def test_without_a_profile_the_state_is_that_of_the_plan(planned: str | None, state: str) -> None:
    rows = [row("r1/b1", {"state": planned})]
    context = replace(ON_SIM, placed={})
    (sample,) = make_samples((start(), made(1, passed(8.0), "aa")), rows, context)
    assert sample.state == state


def test_prediction_belongs_to_the_techniques_that_were_predicted() -> None:
    child = made(1, passed(8.0), "aa")
    plan = {"techniques": ["aa"], "predicted_gain": 0.2, "predicted_interval": [0.1, 0.3]}
    (sample,) = make_samples((start(), child), [row("r1/b1", plan)], ON_SIM)
    assert (sample.predicted, sample.predicted_interval) == (0.2, (0.1, 0.3))
    (other,) = make_samples(
        (start(), child), [row("r1/b1", {**plan, "techniques": ["bb"]})], ON_SIM
    )
    assert (other.predicted, other.predicted_interval) == (None, None)
