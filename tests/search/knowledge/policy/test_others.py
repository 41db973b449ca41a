"""What other bases claim advises, and some tries made here outweigh it, whatever they claim."""

from dataclasses import replace

import pytest

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import MOST_OF_OTHERS, counted
from kopt.search.knowledge.policy.kinship import trust_in_priors
from kopt.search.knowledge.policy.posterior import Situation, predict
from kopt.search.knowledge.records import Evidence, Prior
from support.policy_cases import H100, HERE, base_of, entry, failed, gained, prior

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
