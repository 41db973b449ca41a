"""The base is a fold of what was learned: repeatable, resumable, and its own master."""

import pytest

from kopt.kernels.status import Provenance
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.edits import AdjustPrior, Deprecate, Revive
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import ProfileSignature
from support.knowledge_cases import (
    ENTRY,
    ON_SIM,
    RUN,
    SEED,
    STATE,
    TECHNIQUE,
    changes_of,
    edit,
    projected,
    sample,
)


def test_nothing_learned_is_the_seed() -> None:
    base = projected([])
    assert (base.states, base.techniques) == (SEED.states, SEED.techniques)
    assert (base.entries, base.pairs) == (SEED.entries, SEED.pairs)


@pytest.mark.parametrize("seed", range(10))
def test_a_base_that_is_extended_is_the_same_as_one_projected_at_once(seed: int) -> None:
    changes = changes_of(seed, 30)
    cut = seed * 3
    resumed = extend(projected(changes[:cut]), changes[cut:], len(changes))
    assert resumed == projected(changes)
    assert list(resumed.entries) == list(projected(changes).entries)


def test_a_sample_counts_once_in_its_entry_with_where_it_was_seen() -> None:
    base = projected([(1, sample(1)), (2, sample(2, outcome="failed", measured=None))])
    evidence = base.entries[ENTRY].evidence["sm_90a"]["k1"]
    assert (evidence.tries, evidence.gained, evidence.failed) == (2, 1, 1)
    assert evidence.seen == (f"{RUN}/1", f"{RUN}/2")
    assert evidence.version == 2


def test_estimates_and_measurements_stand_apart() -> None:
    base = projected([(1, sample(1)), (2, sample(2, **ON_SIM))])
    assert set(base.entries[ENTRY].evidence) == {"sm_90a", "sm_90a estimated"}


def test_a_technique_after_another_is_evidence_of_the_pair() -> None:
    base = projected([(1, sample(1, previous="vector_loads"))])
    assert base.pairs["vector_loads", TECHNIQUE].evidence["sm_90a"]["k1"].tries == 1


def test_a_composite_is_an_entry_of_its_own_and_no_evidence_of_its_parts() -> None:
    mixed = (TECHNIQUE, "vector_loads")
    base = projected([(1, sample(1, techniques=mixed, previous="vector_loads"))])
    assert base.entries[STATE, mixed].evidence["sm_90a"]["k1"].tries == 1
    assert not base.entries[ENTRY].evidence
    assert base.pairs == SEED.pairs


def test_a_state_and_a_technique_that_nobody_added_are_discovered() -> None:
    seen = ProfileSignature(
        bottleneck="l2_bound", suspects=("spills",), provenance=Provenance.MEASURED
    )
    base = projected(
        [(1, sample(1, state="odd", techniques=("odd_trick",), signature_before=seen))]
    )
    state, technique = base.states["odd"], base.techniques["odd_trick"]
    assert (state.bottleneck, state.suspects, state.is_discovered) == (
        "l2_bound",
        ("spills",),
        True,
    )
    assert (technique.family, technique.is_discovered) == ("other", True)


def test_what_a_user_decides_holds_against_an_import() -> None:
    theirs = projected([(1, edit(Deprecate))], "k2")
    assert projected([], imports=[theirs]).entries[ENTRY].is_deprecated
    assert not projected([(1, edit(Revive))], imports=[theirs]).entries[ENTRY].is_deprecated


def test_no_import_redefines_what_ships_with_kopt() -> None:
    modest = projected([(1, edit(AdjustPrior, gain=0.0, weight=0.1))], "k2")
    assert projected([], imports=[modest]).entries[ENTRY].prior == SEED.entries[ENTRY].prior


def test_an_import_cannot_speak_for_this_base() -> None:
    forged = projected([(1, sample(1)), (9, sample(2))], "k1")
    base = projected([(1, sample(1))], "k1", [forged])
    assert base.entries[ENTRY].evidence["sm_90a"]["k1"].tries == 1


def test_a_state_inherits_along_its_line_and_never_in_circles() -> None:
    one = SEED.states[STATE].model_copy(update={"inherits": "spilling"})
    other = SEED.states["spilling"].model_copy(update={"inherits": STATE})
    base = KnowledgeBase(states={STATE: one, "spilling": other})
    assert [state.id for state in base.ancestry(STATE)] == [STATE, "spilling"]
    assert base.ancestry("nowhere") == ()
