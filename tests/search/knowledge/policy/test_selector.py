"""What is drawn: more often what is worth more, never twice, the same for the same seed.

What is worth suggesting in a state: what a prior or a result speaks for, unless it was used.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.posterior import Situation
from kopt.search.knowledge.policy.selector import EXPLORED_SHARE, Drawn, draw, listed_of
from kopt.search.knowledge.records import KnowledgeEntry, Prior, Technique
from kopt.search.knowledge.seed_base import load_seed
from support.policy_cases import (
    H100,
    HERE,
    base_of,
    entry,
    gained,
    pair,
    prior,
    technique,
    within_noise,
)

NAMES = tuple(f"technique_{number}" for number in range(8))
ALL = tuple(technique(name) for name in NAMES)
START = Situation(H100, HERE)
NOTHING = base_of()
KNOWN = base_of(
    entry(names=(NAMES[0],), found={H100: gained(8)}),
    *(entry(names=(name,), found={H100: within_noise(8)}) for name in NAMES[1:]),
)


def one(
    base: KnowledgeBase,
    number: int,
    situation: Situation = START,
    allowed: Sequence[Technique] = ALL,
) -> Drawn:
    return draw(base, situation, allowed, 1, f"0/r{number}")[0]


def counts(base: KnowledgeBase, situation: Situation = START, draws: int = 300) -> Counter[str]:
    return Counter(one(base, number, situation).technique.id for number in range(draws))


def test_without_memory_all_are_equally_likely() -> None:
    found = counts(NOTHING, draws=800)
    # chi-square with 7 degrees of freedom: above 24.3 in one of a thousand
    assert sum((found[name] - 100) ** 2 / 100 for name in NAMES) < 24.3


def test_what_is_known_to_gain_is_drawn_nearly_always() -> None:
    assert counts(KNOWN)[NAMES[0]] > 280


def test_a_prior_makes_a_technique_likely_but_not_certain() -> None:
    found = counts(base_of(entry(names=(NAMES[0],), expected=prior(0.1, 1.0))))
    assert 200 < found[NAMES[0]] < 290


def test_the_same_seed_draws_the_same() -> None:
    base = base_of(*KNOWN.entries.values())
    assert draw(KNOWN, START, ALL, 5, "0/r3/t2") == draw(base, START, ALL, 5, "0/r3/t2")


def test_the_draws_are_the_same_on_every_machine() -> None:
    found = draw(NOTHING, START, ALL, 3, "0/r3/t2")
    assert [drawn.technique.id for drawn in found] == ["technique_7", "technique_2", "technique_4"]
    assert found[0].value == pytest.approx(0.02652354464205983)


def test_the_order_of_the_allowed_decides_nothing() -> None:
    assert draw(KNOWN, START, ALL, 5, "a") == draw(KNOWN, START, ALL[::-1], 5, "a")


def test_the_value_of_a_technique_does_not_depend_on_the_others() -> None:
    values = {drawn.technique.id: drawn.value for drawn in draw(NOTHING, START, ALL, 8, "a")}
    fewer = draw(NOTHING, START, ALL[:3], 3, "a")
    assert {drawn.technique.id: drawn.value for drawn in fewer} == {
        name: values[name] for name in NAMES[:3]
    }


def test_nothing_is_drawn_twice_and_there_may_be_less_than_asked_for() -> None:
    found = [drawn.technique.id for drawn in draw(KNOWN, START, ALL, 20, "a")]
    assert sorted(found) == sorted(NAMES)


def test_of_nothing_nothing_is_drawn() -> None:
    assert draw(KNOWN, START, (), 3, "a") == ()


def test_the_technique_of_the_step_before_is_drawn_less() -> None:
    before = counts(NOTHING, Situation(H100, HERE, NAMES[0]), 400)
    assert before[NAMES[0]] < 25


@pytest.mark.parametrize("uses", [1, 2, 3])
def test_each_use_makes_a_known_gain_less_likely(uses: int) -> None:
    base = base_of(
        entry(names=(NAMES[0],), found={H100: gained(8)}),
        *(entry(names=(name,), found={H100: gained(8, 0.1)}) for name in NAMES[1:]),
    )
    used, less = (Situation(H100, HERE, used=(NAMES[0],) * n) for n in (uses, uses - 1))
    assert one(base, 1, used, ALL[:1]).value == pytest.approx(
        0.3 * one(base, 1, less, ALL[:1]).value
    )
    assert counts(base, used)[NAMES[0]] < 60


def test_what_is_deprecated_is_not_drawn() -> None:
    deprecated = entry(names=(NAMES[0],), found={H100: gained(8)}).model_copy(
        update={"is_deprecated": True}
    )
    found = draw(base_of(deprecated), START, ALL, 8, "a")
    assert NAMES[0] not in [drawn.technique.id for drawn in found]


def test_a_share_of_the_draws_goes_to_what_was_hardly_tried() -> None:
    # seven are well known to gain, one was tried twice without effect
    base = base_of(
        *(entry(names=(name,), found={H100: gained(20)}) for name in NAMES[1:]),
        entry(names=(NAMES[0],), found={H100: within_noise(2)}),
    )
    explored = [drawn for n in range(500) if (drawn := one(base, n)).is_exploration]
    assert len(explored) / 500 == pytest.approx(EXPLORED_SHARE, abs=0.04)
    assert {drawn.technique.id for drawn in explored} == {NAMES[0]}
    assert "explored: fewer than 3 tries here" in explored[0].why


def test_where_all_is_well_known_nothing_is_explored() -> None:
    assert not any(one(KNOWN, number).is_exploration for number in range(100))


def test_a_technique_that_prepares_another_is_offered() -> None:
    entries = (
        entry(names=(NAMES[0],), found={H100: gained(8, 0.02)}),
        entry(names=(NAMES[1],), found={H100: gained(8, 0.05)}),
    )
    alone = base_of(*entries)
    prepared = base_of(*entries, pairs=[pair(NAMES[0], NAMES[1], prior(0.6, 2.0))])
    first = [one(base, 1, START, ALL[:2]) for base in (alone, prepared)]
    assert [drawn.technique.id for drawn in first] == [NAMES[1], NAMES[0]]
    assert f"prepares {NAMES[1]}" in first[1].why


def test_what_was_prepared_already_is_not_prepared_again() -> None:
    base = base_of(pairs=[pair(NAMES[0], NAMES[1], prior(0.6, 2.0))])
    used = Situation(H100, HERE, used=(NAMES[1],))
    assert not any("prepares" in drawn.why for drawn in draw(base, used, ALL, 8, "a"))


def test_a_draw_says_what_is_expected_and_what_it_rests_on() -> None:
    why = one(KNOWN, 1, allowed=ALL[:1]).why
    assert why.startswith("+20 % expected (")
    assert why.endswith("where it has an effect, 86 % of tries; sm_90a: 8 tries")


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
