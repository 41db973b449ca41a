"""Draws of the shortlist: what the base speaks for comes first, and all others have their share."""

from dataclasses import replace

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.posterior import Situation
from kopt.search.knowledge.policy.selector import draw
from kopt.search.knowledge.policy.shortlist import UNLISTED_SHARE, draw_listed
from kopt.search.knowledge.records import Entry, Prior
from kopt.search.knowledge.seed_base import load_seed

SEED = load_seed()
STATE = "dram_saturated"
EVERY = tuple(SEED.techniques.values())
LISTED = {entry.techniques[0] for entry in SEED.entries_of(STATE)}
DRAWS = 200


def _situation(*used: str) -> Situation:
    return Situation("sm_100a estimated", STATE, None, used)


def _first(base: KnowledgeBase, situation: Situation) -> list[str]:
    """Return which technique is drawn first, under many names."""
    return [
        draw_listed(base, situation, EVERY, 1, f"{place}")[0].technique.id for place in range(DRAWS)
    ]


def test_most_draws_are_of_techniques_that_the_base_lists_and_some_are_not() -> None:
    share = sum(name in LISTED for name in _first(SEED, _situation())) / DRAWS
    assert 1 - 2 * UNLISTED_SHARE < share < 1


def test_listed_techniques_that_were_used_give_way_to_all_others() -> None:
    drawn = _first(SEED, _situation(*LISTED))
    assert sum(name in LISTED for name in drawn) / DRAWS < 0.2


def test_technique_that_is_expected_to_lose_is_on_no_list() -> None:
    (name, *_) = sorted(LISTED)
    losing = Prior(gain=-0.5, weight=2.0, source="made up")
    entry = Entry(state=STATE, techniques=(name,), prior=losing)
    base = replace(SEED, entries={**SEED.entries, (STATE, (name,)): entry})
    assert _first(base, _situation()).count(name) < DRAWS * UNLISTED_SHARE


def test_more_draws_than_are_listed_are_filled_with_others() -> None:
    drawn = [one.technique.id for one in draw_listed(SEED, _situation(), EVERY, 12, "0")]
    assert len(set(drawn)) == 12 and set(drawn) & LISTED and set(drawn) - LISTED


def test_without_memory_nothing_is_listed() -> None:
    empty = replace(SEED, entries={}, pairs={})
    for name in ("a", "b", "c"):
        plain = draw(empty, _situation(), EVERY, 3, name)
        assert draw_listed(empty, _situation(), EVERY, 3, name) == plain
