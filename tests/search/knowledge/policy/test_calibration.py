"""Predicted against measured, by hand."""

from typing import Any

import pytest

from kopt.search.knowledge.policy.calibration import calibrate, reward
from support.knowledge_cases import ON_SIM, sample

PREDICTED: dict[str, Any] = {"predicted": 0.1, "predicted_interval": (-0.1, 0.3)}


def test_the_reward_is_what_came_beyond_the_prediction() -> None:
    assert reward(sample(measured=0.25, predicted=0.1)) == pytest.approx(0.15)
    assert reward(sample(measured=-0.1, predicted=0.1, outcome="lost")) == pytest.approx(-0.2)


@pytest.mark.parametrize("outcome", ["within_noise", "failed"])
def test_without_a_gain_there_is_no_reward(outcome: str) -> None:
    measured = None if outcome == "failed" else 0.0
    assert reward(sample(measured=measured, outcome=outcome, predicted=0.1)) is None


def test_without_a_prediction_there_is_no_reward() -> None:
    assert reward(sample()) is None


def test_calibration_is_of_all_states_and_of_each() -> None:
    samples = [
        sample(1, measured=0.2, **PREDICTED),
        sample(2, measured=0.5, **PREDICTED),
        sample(3, measured=-0.2, outcome="lost", **PREDICTED, state="barrier_bound"),
        sample(4, measured=0.0, outcome="within_noise", **PREDICTED),
        sample(5, measured=None, interval=None, outcome="failed", **PREDICTED),
        sample(6, measured=0.9),
    ]
    whole, *by_state = calibrate(samples)
    assert (whole.state, whole.arch_key) == (None, "sm_90a")
    assert (whole.compared, whole.without_effect, whole.failed) == (3, 1, 1)
    assert whole.reward == pytest.approx((0.1 + 0.4 - 0.3) / 3)
    assert whole.discrepancy == pytest.approx(0.8 / 3)
    assert whole.with_interval == 3
    assert whole.coverage == pytest.approx(1 / 3)
    assert [(one.state, one.compared) for one in by_state] == [
        ("barrier_bound", 1),
        ("dram_saturated", 2),
    ]


def test_estimates_are_compared_apart_from_measurements() -> None:
    samples = [sample(1, **PREDICTED), sample(2, **(ON_SIM | PREDICTED))]
    keys = [one.arch_key for one in calibrate(samples) if one.state is None]
    assert keys == ["sm_90a", "sm_90a estimated"]


def test_where_nothing_was_compared_there_is_no_mean() -> None:
    (whole, _) = calibrate([sample(measured=None, interval=None, outcome="failed", **PREDICTED)])
    assert (whole.reward, whole.discrepancy, whole.coverage) == (None, None, None)


def test_of_nothing_there_is_no_calibration() -> None:
    assert calibrate([sample()]) == ()
