"""Bases join in any order, any number of times, and an origin's newer evidence holds."""

from dataclasses import replace

import pytest

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.edits import AdjustPrior, Deprecate
from kopt.search.knowledge.merge import MERGED, join, without_origin
from kopt.search.knowledge.records import Technique
from support.knowledge_cases import (
    ENTRY,
    SEED,
    TECHNIQUE,
    changes_of,
    edit,
    projected,
    random_base,
    sample,
)

pytestmark = pytest.mark.slow  # hundreds of bases are merged

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_joining_a_base_with_itself_changes_nothing(seed: int) -> None:
    base = random_base(seed)
    assert join(base, base) == base


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_two_bases_does_not_matter(seed: int) -> None:
    one, other = random_base(seed), random_base(seed + 100)
    assert _words(join(one, other)) == _words(join(other, one))


@pytest.mark.parametrize("seed", SEEDS)
def test_it_does_not_matter_which_two_of_three_are_joined_first(seed: int) -> None:
    one, other, third = random_base(seed), random_base(seed + 100), random_base(seed + 200)
    assert _words(join(join(one, other), third)) == _words(join(one, join(other, third)))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_joined_once_adds_nothing_the_second_time(seed: int) -> None:
    one, other = random_base(seed), random_base(seed + 100)
    both = join(one, other)
    assert _words(join(both, one)) == _words(join(both, other)) == _words(both)


def test_the_newer_evidence_of_an_origin_replaces_the_older_and_is_not_added_to_it() -> None:
    changes = [(number, sample(number)) for number in (1, 2, 3)]
    older, newer = projected(changes[:2]), projected(changes)
    assert join(older, newer).entries[ENTRY].evidence == newer.entries[ENTRY].evidence


def test_evidence_that_an_origin_has_revoked_does_not_come_back_from_an_older_copy() -> None:
    older = projected([(1, sample(1)), (2, sample(2))])
    newer = replace(projected([(1, sample(1))]), version=3, origins={"k1": 3})
    assert join(older, newer).entries[ENTRY].evidence["sm_90a"]["k1"].tries == 1


def test_evidence_of_several_origins_stands_side_by_side() -> None:
    both = join(projected([(1, sample(1))], "k1"), projected([(1, sample(1))], "k2"))
    assert set(both.entries[ENTRY].evidence["sm_90a"]) == {"k1", "k2"}
    assert (both.origin, both.origins) == (MERGED, {"k1": 1, "k2": 1})


def test_of_two_priors_the_more_modest_one_holds() -> None:
    one = projected([(1, edit(AdjustPrior, gain=0.5))], "k1")
    other = projected([(1, edit(AdjustPrior, gain=-0.01))], "k2")
    prior = join(one, other).entries[ENTRY].prior
    assert prior is not None and prior.gain == -0.01


def test_of_two_priors_that_claim_as_much_the_same_one_holds_in_either_order() -> None:
    one = projected([(1, edit(AdjustPrior, gain=0.1))], "k1")
    other = projected([(1, edit(AdjustPrior, gain=-0.1))], "k2")
    assert join(one, other).entries == join(other, one).entries


def test_a_deprecation_holds() -> None:
    both = join(projected([(1, edit(Deprecate))], "k1"), projected([], "k2"))
    assert both.entries[ENTRY].is_deprecated


def test_what_ships_describes_a_technique_better_than_what_was_discovered() -> None:
    known = SEED.techniques[TECHNIQUE]
    invented = known.model_copy(update={"is_discovered": True, "description": "A"})
    other = _with_technique(projected([]), invented)
    assert join(other, SEED).techniques[TECHNIQUE] == known


def test_two_homes_that_discovered_the_same_name_agree_on_one_description() -> None:
    invented = SEED.techniques[TECHNIQUE].model_copy(update={"id": "odd", "is_discovered": True})
    one = _with_technique(projected([], "k1"), invented.model_copy(update={"description": "A"}))
    other = _with_technique(projected([], "k2"), invented.model_copy(update={"description": "B"}))
    assert join(one, other).techniques["odd"] == join(other, one).techniques["odd"]


def test_an_origin_taken_out_leaves_what_others_know() -> None:
    one = projected([(1, sample(1)), (2, sample(2, state="spilling"))], "k1")
    both = join(one, projected([(1, sample(1))], "k2"))
    left = without_origin(both, "k1")
    assert set(left.entries[ENTRY].evidence["sm_90a"]) == {"k2"}
    assert ("spilling", (TECHNIQUE,)) not in left.entries
    assert set(left.origins) == {"k2"}


def test_a_base_without_an_origin_is_the_same_without_it() -> None:
    base = projected(changes_of(1, 24))
    assert without_origin(base, "k9") == base


def _with_technique(base: KnowledgeBase, technique: Technique) -> KnowledgeBase:
    return replace(base, techniques={**base.techniques, technique.id: technique})


def _words(base: KnowledgeBase) -> list[object]:
    """Return `base` with the order of its items, which its file has, too."""
    mappings = (base.states, base.techniques, base.entries, base.pairs, base.origins)
    evidence = [
        (key, [(arch, list(origins)) for arch, origins in entry.evidence.items()])
        for key, entry in base.entries.items()
    ]
    return [base, [list(mapping) for mapping in mappings], evidence]
