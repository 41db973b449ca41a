"""What is worth suggesting in a state: what a prior or a result speaks for, unless it was used."""

from dataclasses import replace

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.posterior import Situation
from kopt.search.knowledge.policy.selector import listed_of
from kopt.search.knowledge.records import KnowledgeEntry, Prior
from kopt.search.knowledge.seed_base import load_seed

SEED = load_seed()
STATE = "dram_saturated"
EXPECTED = {entry.techniques[0] for entry in SEED.entries_of(STATE)}


def _listed(base: KnowledgeBase, *used: str) -> set[str]:
    situation = Situation("sm_100a estimated", STATE, None, used)
    return {one.id for one in listed_of(base, situation, tuple(SEED.techniques.values()))}


def test_techniques_with_a_prior_for_the_state_are_listed_and_no_others() -> None:
    assert _listed(SEED) == EXPECTED != set()


def test_technique_that_was_used_is_listed_no_more() -> None:
    (name, *_) = sorted(EXPECTED)
    assert _listed(SEED, name) == EXPECTED - {name}


def test_technique_that_is_expected_to_lose_is_not_listed() -> None:
    (name, *_) = sorted(EXPECTED)
    losing = Prior(gain=-0.5, weight=2.0, source="made up")
    entry = KnowledgeEntry(state=STATE, techniques=(name,), prior=losing)
    base = replace(SEED, entries={**SEED.entries, (STATE, (name,)): entry})
    assert _listed(base) == EXPECTED - {name}


def test_without_memory_nothing_is_listed() -> None:
    assert _listed(replace(SEED, entries={}, pairs={})) == set()
