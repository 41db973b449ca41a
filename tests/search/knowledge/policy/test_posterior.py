"""What is expected of a technique: which evidence counts, and how much of it."""

import pytest

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.belief import Belief
from kopt.search.knowledge.policy.posterior import (
    Predictor,
    Situation,
    arch_spread,
    predict,
    trust_in_priors,
)
from support.policy_cases import (
    B200,
    H100,
    HERE,
    NEIGHBOR,
    ON_SIM,
    PARENT,
    STRANGER,
    base_of,
    entry,
    failed,
    gained,
    pair,
    prior,
    within_noise,
)

TILING = ("tiling",)


def belief(base: KnowledgeBase, situation: Situation | None = None) -> Belief:
    return Predictor(base, situation or Situation(H100, HERE)).known(TILING).belief


def mean_of(count: float, gain: float = 0.2) -> float:
    """Return the mean after `count` gains beside half a try that loses 0.05."""
    return (count * gain - 0.5 * 0.05) / (0.5 + count)


def test_of_an_unknown_technique_a_small_loss_is_expected() -> None:
    found = predict(base_of(), Situation(H100, HERE), TILING)
    assert (found.gain, found.tries, found.sources) == (-0.05, 0, ())
    assert found.works == pytest.approx(0.14)


def test_evidence_of_the_situation_counts_in_full() -> None:
    found = predict(base_of(entry(found={H100: gained(4)})), Situation(H100, HERE), TILING)
    assert found.gain == pytest.approx(mean_of(4))
    assert (found.tries, found.sources) == (4, ("sm_90a: 4 tries",))


@pytest.mark.parametrize(
    ("of", "key", "counted", "factor"),
    [
        (HERE, B200, 4 / (1 + 4 * 0.25), 1.0),
        (HERE, ON_SIM, 4 / (1 + 4 * 0.5), 1.0),
        (HERE, f"{B200} estimated", 4 / (1 + 4 * 0.75), 1.0),
        (PARENT, H100, 4 / (1 + 4 * 0.25), 0.8),
        (PARENT, B200, 4 / (1 + 4 * 0.5), 0.8),
        (NEIGHBOR, H100, 4 / (1 + 4 * 1.0), 0.5),
    ],
)
def test_other_evidence_counts_less(of: str, key: str, counted: float, factor: float) -> None:
    found = belief(base_of(entry(of, found={key: gained(4)})))
    assert found.weight == pytest.approx(0.5 + counted)
    assert found.mean == pytest.approx(mean_of(counted, 0.2 * factor))


def test_a_hundred_tries_elsewhere_count_as_less_than_four() -> None:
    found = belief(base_of(entry(found={B200: gained(100)})))
    assert 3.8 < found.weight - 0.5 < 4.0


def test_a_few_own_losses_outweigh_a_hundred_gains_elsewhere() -> None:
    found = base_of(entry(found={B200: gained(100), H100: gained(6, mean=-0.2)}))
    assert belief(found).mean < 0


def test_gains_in_a_state_of_another_bottleneck_count_nothing() -> None:
    found = belief(base_of(entry(STRANGER, found={H100: gained(4)})))
    assert (found.mean, found.weight, found.effects) == (-0.05, 0.5, 0.2)


def test_failures_count_wherever_they_were() -> None:
    found = belief(base_of(entry(STRANGER, found={B200: failed(4)})))
    # 4 / (1 + 4 * 0.25) = 2 failures beside 1.4 of 2 that pass
    assert found.works == pytest.approx(1.4 / 4.0 * 0.2)


def test_own_failures_count_in_full() -> None:
    found = belief(base_of(entry(found={H100: failed(2)})))
    assert found.works == pytest.approx(1.4 / 4.0 * 0.2)


def test_estimates_and_measurements_are_told_apart_in_the_sources() -> None:
    base = base_of(entry(found={H100: gained(1), ON_SIM: gained(2)}))
    found = predict(base, Situation(ON_SIM, HERE), TILING)
    assert found.tries == 2
    assert found.sources == ("sm_90a estimated: 2 tries", "sm_90a: 1 try")


def test_a_prior_counts_as_so_many_tries() -> None:
    found = predict(base_of(entry(expected=prior(0.15, 1.5))), Situation(H100, HERE), TILING)
    assert found.gain == pytest.approx(0.1)
    assert (found.tries, found.sources) == (0, ("prior",))


def test_a_prior_is_inherited_with_eight_tenths_of_its_gain() -> None:
    found = belief(base_of(entry(PARENT, expected=prior(0.15, 1.5))))
    assert found.mean == pytest.approx((0.8 * 0.15 * 1.5 - 0.5 * 0.05) / 2)


def test_a_prior_of_another_state_of_the_bottleneck_counts_nothing() -> None:
    assert belief(base_of(entry(NEIGHBOR, expected=prior(0.15, 1.5)))) == Belief()


def test_an_unknown_state_has_only_its_own_evidence() -> None:
    base = base_of(entry("nowhere", found={H100: gained(4)}), entry(found={H100: gained(4, -0.2)}))
    found = belief(base, Situation(H100, "nowhere"))
    assert found.mean == pytest.approx(mean_of(4))


def test_a_composite_is_expected_to_gain_eight_tenths_of_its_parts() -> None:
    base = base_of(
        entry(names=("tiling",), found={H100: gained(1, 0.175)}),
        entry(names=("padding",), found={H100: gained(1, 0.325)}),
    )
    found = predict(base, Situation(H100, HERE), ("tiling", "padding"))
    # parts 0.1 and 0.2, their sum with the weight of one try beside half a try that loses 0.05
    assert found.gain == pytest.approx((0.8 * 0.3 - 0.5 * 0.05) / 1.5)
    assert found.sources == ("the gains of its parts",)


def test_each_part_of_a_composite_gains_what_the_one_before_it_adds() -> None:
    added = [pair("padding", "tiling", prior(0.3, 1.0)), pair("tiling", "unrolling", prior(0.6, 1))]
    parts = ("tiling", "unrolling")
    alone, after = (
        predict(base_of(pairs=added), Situation(H100, HERE, previous), parts)
        for previous in (None, "padding")
    )
    # 0.8 of two gains of -0.05 and what is added, 0.2 by tiling and 0.1 by padding, as one try
    assert alone.gain == pytest.approx((0.8 * (-0.1 + 0.2) - 0.5 * 0.05) / 1.5)
    assert after.gain == pytest.approx((0.8 * (-0.1 + 0.3) - 0.5 * 0.05) / 1.5)


def test_a_composite_has_evidence_of_its_own() -> None:
    base = base_of(entry(names=("tiling", "padding"), found={H100: gained(4)}))
    together = predict(base, Situation(H100, HERE), ("tiling", "padding"))
    assert (together.tries, belief(base).weight) == (4, 0.5)


def test_what_a_technique_prepares_gains_more_right_after_it() -> None:
    base = base_of(entry(), pairs=[pair("padding", "tiling", prior(0.3, 1.0))])
    assert belief(base, Situation(H100, HERE, "padding")).mean == pytest.approx(0.3 / 3 - 0.05)
    assert belief(base).mean == -0.05


@pytest.mark.parametrize(("key", "counted"), [(H100, 4.0), (B200, 2.0)])
def test_a_pair_has_evidence_beside_its_prior(key: str, counted: float) -> None:
    found = pair("padding", "tiling", prior(0.3, 1.0), {key: gained(4, 0.1)})
    extra = Predictor(base_of(pairs=[found]), Situation(H100, HERE)).extra("padding", "tiling")
    assert extra == pytest.approx((0.3 + counted * 0.1) / (3 + counted))


@pytest.mark.parametrize(
    ("one", "other", "spread"),
    [
        (H100, H100, 0.0),
        (H100, B200, 0.25),
        (H100, ON_SIM, 0.5),
        (ON_SIM, f"{B200} estimated", 0.25),
        (B200, ON_SIM, 0.75),
    ],
)
def test_distances_of_architectures_are_the_same_both_ways(
    one: str, other: str, spread: float
) -> None:
    assert arch_spread(one, other) == arch_spread(other, one) == spread


def test_priors_that_were_never_tried_are_trusted() -> None:
    assert trust_in_priors(base_of(entry(expected=prior(0.3, 1.0)))) == 1.0


def test_broken_promises_cost_trust_and_failures_do_not() -> None:
    promised = entry(expected=prior(0.3, 1.0), found={H100: within_noise(8)})
    hard = entry(NEIGHBOR, expected=prior(0.3, 1.0), found={H100: failed(8)})
    assert trust_in_priors(base_of(promised, hard)) == pytest.approx(4 / 12)


def test_kept_promises_of_gains_and_losses_keep_trust() -> None:
    gain = entry(expected=prior(0.3, 1.0), found={H100: gained(5)})
    losses = gained(3).model_copy(update={"gained": 0, "lost": 3})
    loss = entry(NEIGHBOR, expected=prior(-0.3, 1.0), found={B200: losses})
    assert trust_in_priors(base_of(gain, loss)) == 1.0


def test_evidence_without_a_promise_costs_no_trust() -> None:
    assert trust_in_priors(base_of(entry(found={H100: within_noise(9)}))) == 1.0


def test_broken_promises_of_others_lower_the_weight_of_a_prior() -> None:
    broken = entry(STRANGER, ("padding",), prior(0.3, 1.0), {H100: within_noise(4)})
    found = belief(base_of(entry(expected=prior(0.25, 2.0)), broken))
    assert found.mean == pytest.approx(0.15)  # (0.25 - 0.5 * 0.05) / 1.5: half of 2 tries
