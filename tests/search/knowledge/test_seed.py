"""The seed base is whole: it covers what a profile can say, and every entry names its source."""

import re
from importlib.resources import files
from typing import get_args

import pytest

from kopt.kernels.profile_result import BottleneckName, SuspectName
from kopt.search.knowledge.records import switch_of, technique_of
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.applications import TUNE_CONSTANTS
from kopt.search.knowledge.states.matching import UNKNOWN_STATE
from kopt.search.knowledge.states.signature import TRAITS

SEED = load_seed()
NOTES = files("kopt.tools.docs").joinpath("notes")
_ALL = [
    *(entry.prior for entry in SEED.entries.values()),
    *(pair.prior for pair in SEED.pairs.values()),
]
PRIORS = [prior for prior in _ALL if prior is not None]
MODEST = 0.5
"""ln ratio, 1.65x: a guess promises no more."""


def test_seed_is_as_large_as_documented_knowledge_asks() -> None:
    assert len(SEED.techniques) >= 45
    assert len(SEED.states) >= 16
    assert len(SEED.entries) >= 70


def test_every_bottleneck_and_suspect_has_a_state() -> None:
    states = SEED.states.values()
    assert {one.bottleneck for one in states} == {*get_args(BottleneckName), "unknown"}
    assert {name for one in states for name in one.suspects} == set(get_args(SuspectName))


def test_states_are_made_of_words_that_profiles_have() -> None:
    assert {word for one in SEED.states.values() for word in one.traits} <= set(TRAITS)
    assert UNKNOWN_STATE in SEED.states


def test_every_state_has_something_to_try() -> None:
    assert {state for state, _ in SEED.entries} == set(SEED.states)


def test_every_technique_is_worth_trying_somewhere() -> None:
    assert {name for _, names in SEED.entries for name in names} == set(SEED.techniques)
    assert TUNE_CONSTANTS in SEED.techniques


def test_every_entry_and_pair_has_a_prior() -> None:
    assert PRIORS == _ALL


def test_nothing_of_the_seed_claims_to_be_measured() -> None:
    assert not [one for one in SEED.entries.values() if one.evidence or one.notes]
    assert all(abs(prior.gain) <= MODEST for prior in PRIORS)
    assert all(0 < prior.weight <= 1 for prior in PRIORS)


def test_everything_names_its_source() -> None:
    for state in SEED.states.values():
        assert state.source.strip() and state.description.strip()
    for technique in SEED.techniques.values():
        assert technique.source.strip() and technique.description.strip()
    assert all(prior.source.strip() for prior in PRIORS)


@pytest.mark.parametrize("source", sorted({prior.source for prior in PRIORS}))
def test_source_of_a_prior_is_a_note_that_is_there_or_public(source: str) -> None:
    found = re.fullmatch(r"notes/(\w+\.md), (.+)", source)
    if found is None:
        assert source.startswith(("CUTLASS", "PTX ISA", "KernelBlaster, arXiv"))
    else:
        assert f"## {found[2]}\n" in NOTES.joinpath(found[1]).read_text("utf-8")


@pytest.mark.parametrize("technique", sorted(SEED.techniques))
def test_switch_of_a_technique_is_a_tune_name(technique: str) -> None:
    switch = switch_of(technique)
    assert re.fullmatch(r"[A-Z][A-Z0-9_]{2,31}", switch)
    assert technique_of(switch) == technique


@pytest.mark.parametrize("name", ["BLOCK", "WITH_", "WITH_1", "ROWS_WITH_SHUFFLES"])
def test_ordinary_tune_value_switches_nothing(name: str) -> None:
    assert technique_of(name) is None


def test_pairs_and_preparations_agree() -> None:
    prepared = {(one.id, after) for one in SEED.techniques.values() for after in one.prepares}
    gaining = {key for key, pair in SEED.pairs.items() if pair.prior and pair.prior.gain > 0}
    assert gaining <= prepared
