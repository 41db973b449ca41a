"""Every rule by which a sample changes evidence, against numbers computed by hand.

What other bases claim advises, and some tries made here outweigh it, whatever they claim.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import (
    MOST_OF_OTHERS,
    absorb,
    absorb_pair,
    counted,
    pooled,
    weight_of,
)
from kopt.search.knowledge.policy.posterior import Situation, predict, trust_in_priors
from kopt.search.knowledge.records import Evidence, Prior, Sample
from support.knowledge_cases import random_samples, sample
from support.policy_cases import H100, HERE, base_of, entry, failed, gained, prior


def exact(number: int, gain: float) -> Sample:
    outcome = "gained" if gain > 0 else "lost"
    return sample(number, measured=gain, interval=(gain, gain), outcome=outcome)


def after(*samples: Sample) -> Evidence:
    evidence = Evidence()
    for one in samples:
        evidence = absorb(evidence, one)
    return evidence


def moments(evidence: Evidence) -> tuple[float, float, float]:
    return evidence.weight, evidence.mean, evidence.m2


def test_gains_add_up_to_mean_and_squared_deviations() -> None:
    evidence = after(exact(1, 0.2), exact(2, 0.4))
    assert moments(evidence) == pytest.approx((2.0, 0.3, 0.02))
    assert (evidence.tries, evidence.gained) == (2, 2)


def test_a_loss_moves_the_mean_down() -> None:
    evidence = after(exact(1, 0.2), exact(2, -0.1))
    assert moments(evidence) == pytest.approx((2.0, 0.05, 0.045))
    assert (evidence.gained, evidence.lost) == (1, 1)


def test_within_noise_is_a_try_and_changes_no_gain() -> None:
    before = after(exact(1, 0.2), exact(2, 0.4))
    evidence = absorb(before, sample(3, measured=0.01, outcome="within_noise"))
    assert moments(evidence) == moments(before)
    assert (evidence.tries, evidence.within_noise) == (3, 1)


def test_a_failure_is_a_try_and_changes_no_gain() -> None:
    before = after(exact(1, 0.2))
    evidence = absorb(before, sample(2, measured=None, interval=None, outcome="failed"))
    assert moments(evidence) == moments(before)
    assert (evidence.tries, evidence.failed) == (2, 1)


def test_a_gain_as_uncertain_as_gains_differ_counts_half() -> None:
    # the error is 0.196 / 1.96 = 0.1, as large as GAIN_SPREAD
    assert weight_of(sample(measured=0.5, interval=(0.304, 0.696))) == pytest.approx(0.5)


def test_a_gain_without_an_interval_counts_in_full() -> None:
    assert weight_of(sample(interval=None)) == 1.0


def test_an_uncertain_gain_moves_the_mean_less() -> None:
    evidence = after(exact(1, 0.2), sample(2, measured=0.5, interval=(0.304, 0.696)))
    # (0.2 + 0.5 * 0.5) / 1.5, and 0.3^2 * 1 * 0.5 / 1.5
    assert moments(evidence) == pytest.approx((1.5, 0.3, 0.03))


@pytest.mark.parametrize(("gain", "kept"), [(3.0, 1.5), (-3.0, -1.5)])
def test_one_huge_ratio_counts_as_a_large_one(gain: float, kept: float) -> None:
    assert after(exact(1, gain)).mean == kept


def test_where_it_was_seen_is_the_last_three_latest_last() -> None:
    samples = [sample(n, kernel=kernel) for n, kernel in enumerate(("a1", "b1", "a1", "c1", "d1"))]
    evidence = after(*samples)
    assert evidence.kernels == ("a1", "c1", "d1")
    assert evidence.seen == tuple(one.id for one in samples[2:])


def test_a_pair_learns_what_came_on_top_of_the_entry() -> None:
    alone = Evidence(tries=3, gained=3, weight=3.0, mean=0.1)
    evidence = absorb_pair(Evidence(), exact(1, 0.3), alone)
    assert moments(evidence) == pytest.approx((0.75, 0.2, 0.0))
    assert (evidence.tries, evidence.gained) == (1, 1)


def test_a_pair_learns_no_gain_where_its_second_technique_is_unknown() -> None:
    evidence = absorb_pair(Evidence(), exact(1, 0.3), Evidence())
    assert (evidence.tries, evidence.weight) == (1, 0.0)


@pytest.mark.parametrize("outcome", ["within_noise", "failed"])
def test_a_pair_without_a_gain_is_only_a_try(outcome: str) -> None:
    alone = Evidence(tries=3, gained=3, weight=3.0, mean=0.1)
    evidence = absorb_pair(Evidence(), sample(1, outcome=outcome), alone)
    assert (evidence.tries, evidence.weight) == (1, 0.0)


def test_evidence_of_two_origins_adds_up() -> None:
    one = Evidence(version=4, tries=2, gained=1, failed=1, weight=1.0, mean=0.2, seen=("a",))
    other = Evidence(version=9, tries=4, lost=1, gained=2, within_noise=1, weight=3.0, mean=0.4)
    both = pooled([one, other.model_copy(update={"m2": 0.06})])
    assert moments(both) == pytest.approx((4.0, 0.35, 0.09))
    assert (both.tries, both.gained, both.lost, both.within_noise, both.failed) == (6, 3, 1, 1, 1)
    assert (both.version, both.seen) == (9, ("a",))


def test_nothing_adds_up_to_nothing() -> None:
    assert pooled([]) == Evidence()


@pytest.mark.parametrize("seed", range(20))
def test_parts_add_up_to_the_whole_in_any_order(seed: int) -> None:
    samples = random_samples(seed, 30)
    whole = after(*samples)
    draw = random.Random(seed)
    cuts = sorted(draw.sample(range(31), 3))
    parts = [after(*part) for part in _cut(samples, cuts)]
    draw.shuffle(parts)
    assert moments(pooled(parts)) == pytest.approx(moments(whole))
    assert pooled(parts).tries == whole.tries == 30


def _cut(samples: Sequence[Sample], cuts: Sequence[int]) -> list[Sequence[Sample]]:
    ends = [0, *cuts, len(samples)]
    return [samples[begin:end] for begin, end in pairwise(ends)]


MANY = 1_000_000_000
TILING = ("tiling",)


def _base(
    theirs: Evidence, ours: Evidence | None = None, told: Prior | None = None
) -> KnowledgeBase:
    one = entry(expected=told)
    origins = {"kthem": theirs} if ours is None else {"k1": ours, "kthem": theirs}
    known = one.model_copy(update={"evidence": {H100: origins}})
    return replace(base_of(one), entries={(HERE, TILING): known})


def test_few_tries_of_others_count_like_own_ones() -> None:
    theirs = gained(MOST_OF_OTHERS)
    assert counted({"kthem": theirs}, "k1") == theirs
    assert predict(_base(theirs), Situation(H100, HERE), TILING) == predict(
        base_of(entry(found={H100: theirs})), Situation(H100, HERE), TILING
    )


def test_own_tries_count_in_full() -> None:
    assert counted({"k1": gained(MANY)}, "k1") == gained(MANY)


def test_others_count_up_to_a_limit_with_the_shares_that_they_had() -> None:
    theirs = Evidence(tries=100, gained=50, failed=50, weight=40.0, mean=0.3, m2=2.0)
    found = counted({"a": theirs, "b": theirs}, "k1")
    assert (found.tries, found.gained, found.failed) == (MOST_OF_OTHERS, 10, 10)
    assert (found.weight, found.mean, found.m2) == pytest.approx((8.0, 0.3, 0.4))


def test_gain_that_others_claim_is_unlearned_by_as_many_tries_as_count() -> None:
    claimed, seen = gained(MANY, 1.5), gained(2 * MOST_OF_OTHERS, 0.0)
    situation = Situation(H100, HERE)
    assert predict(_base(claimed), situation, TILING).gain > 1.3
    found = predict(_base(claimed, seen), situation, TILING)
    assert found.gain == pytest.approx(0.5, abs=0.01)
    assert found.tries == MANY + 2 * MOST_OF_OTHERS  # what is told is what was claimed


def test_failures_that_others_claim_do_not_end_a_technique() -> None:
    works = predict(_base(failed(MANY), gained(MOST_OF_OTHERS)), Situation(H100, HERE), TILING)
    assert works.works > 0.3


def test_one_entry_of_others_does_not_end_the_trust_in_all_priors() -> None:
    broken = Evidence(tries=MANY, lost=MANY, weight=float(MANY), mean=-0.1)
    assert trust_in_priors(_base(broken, told=prior(0.2, 1.0))) > 0.15
