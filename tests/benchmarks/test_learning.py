"""What docs/knowledge.md claims of learning, in smaller worlds: the real selector and update."""

from functools import cache

import pytest
from learning_studies import (
    Climbs,
    Scale,
    errors_by_gains,
    false_promises,
    lied_share,
    mean_of,
    memory,
    ratio,
    samples_of,
    transfer,
    typical_ratio,
)
from learning_world import Assumptions

from kopt.search.knowledge.policy.calibration import calibrate

pytestmark = pytest.mark.slow  # hundreds of searches in made-up worlds
SMALL = Assumptions(states=4, bottlenecks=2, techniques=20)
SCALE = Scale(worlds=6, kernels=12, seed="test")
FIRST, LATE = slice(0, 3), slice(6, 12)


@cache
def found() -> dict[str, Climbs]:
    return memory(SCALE, SMALL, arms=("off", "learned", "lies"))


def test_memory_cuts_the_candidates_to_the_goal_by_more_than_half_again() -> None:
    assert ratio(found()["off"], found()["learned"], LATE).value > 1.5
    assert typical_ratio(found()["off"], found()["learned"], LATE).low > 1.5


def test_regret_falls_with_what_was_learned_and_not_without() -> None:
    def regret(arm: str, part: slice) -> float:
        return mean_of(found()[arm], part, lambda one: sum(one.regrets) / len(one.regrets)).value

    assert regret("learned", LATE) < 0.7 * regret("learned", FIRST)
    assert regret("off", LATE) > 0.8 * regret("off", FIRST)


def test_expected_gains_come_nearer_to_the_truth_with_each_gain_seen() -> None:
    errors = errors_by_gains(SCALE, SMALL, found()["learned"])
    values = [errors[least].value for least in (0, 1, 4)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.4 * values[0]


def test_intervals_hold_about_as_much_as_they_say() -> None:
    whole = calibrate(samples_of(found()["learned"]))[0]
    assert whole.coverage == pytest.approx(0.95, abs=0.04)


def test_wrong_priors_are_unlearned() -> None:
    lies = false_promises(SCALE, SMALL)
    first, late = (lied_share(found()["lies"], lies, part).value for part in (FIRST, LATE))
    assert late < 0.75 * first
    assert typical_ratio(found()["off"], found()["lies"], LATE).low > 1.5


def test_a_base_of_another_architecture_helps_from_the_first_kernels() -> None:
    across = transfer(Scale(worlds=6, kernels=3, seed="test"), SMALL, before=10)
    assert typical_ratio(across["learned"], across["transferred"]).low > 1.0
    assert typical_ratio(across["off"], across["transferred"]).low > 1.5


def test_the_same_seed_gives_the_same_searches() -> None:
    scale = Scale(worlds=1, kernels=2, seed="test")
    again = [memory(scale, SMALL, arms=("learned",))["learned"][0] for _ in range(2)]
    assert again[0] == again[1]
