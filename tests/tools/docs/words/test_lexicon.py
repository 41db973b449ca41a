"""The lexicon of synonyms."""

import pytest

from kopt.tools.docs.words.lexicon import MOST_EXPANSIONS, expansions


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ("TMA", "cp_async_bulk_tensor"),
        ("tensor maps", "tma"),
        ("cp.async.bulk.tensor", "cutensormap"),
        ("PDL", "programmatic dependent launch"),
        ("programmatic dependent launches", "pdl"),
        ("griddepcontrol", "pdl"),
        ("smem", "shar memory"),
        ("shared memory", "smem"),
        ("H100", "hopper"),
        ("sm_90a", "h100"),
        ("cudaGridDependencySynchronize", "griddepcontrol_wait"),
    ],
)
def test_a_term_stands_for_its_other_names(query: str, phrase: str) -> None:
    assert phrase in expansions(query)


def test_a_phrase_is_found_within_a_question() -> None:
    assert "griddepcontrol" in expansions("how does programmatic dependent launch work?")


def test_one_way_entries_lead_one_way() -> None:
    assert "rmsnorm" in expansions("layernorm")
    assert "layernorm" not in expansions("rmsnorm")


def test_a_word_without_synonyms_stands_for_itself() -> None:
    assert expansions("walrus") == {}


def test_a_long_query_has_a_bounded_number_of_synonyms() -> None:
    query = "tma pdl smem gmem regs cta cluster bf16 fp8 fp4 rope rmsnorm ilp ncu moe race " * 20
    assert len(expansions(query)) <= MOST_EXPANSIONS
