"""Index terms of text and code."""

import pytest

from kopt.tools.docs.words.code_tokens import (
    arch_tag,
    document_terms,
    phrase_of,
    plain_words,
    query_terms,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("cp.async.bulk", {"cp_async_bulk", "cp_async", "cp", "async", "bulk"}),
        ("cp_async_commit_group", {"cp_async_commit_group", "cp", "async", "commit", "group"}),
        ("__nv_bfloat162", {"nv_bfloat162", "nv", "bfloat162"}),
        ("threadIdx.x", {"threadidx", "thread", "idx"}),
        ("CUtensorMap", {"cutensormap", "tensor", "map"}),
        ("NVFP4QuantizeKernel", {"nvfp4", "quantiz", "kernel"}),
        ("SM90TmaLoad", {"sm90", "tma", "load"}),
        ("float2_to_e2m1x2", {"float2_to_e2m1x2", "float2", "e2m1x2", "e2m1"}),
        ("sm_100a", {"sm_100a", "sm100"}),
        ("compute_90", {"sm90"}),
        ("128x4 tiles", {"128x4", "tile"}),
        ("2D", {"2d"}),
        ("mbarrier.try_wait.parity", {"mbarrier_try_wait_parity", "try_wait", "parity"}),
        ("ld.global.nc.L1::no_allocate", {"ld_global_nc", "no_allocate", "l1"}),
    ],
)
def test_a_name_gives_itself_and_its_parts(text: str, terms: set[str]) -> None:
    assert terms <= set(document_terms(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("barriers", "barrier"),
        ("quantisation", "quantize"),
        ("synchronised", "synchronizing"),
        ("vectorized", "vectorization"),
        ("mapping", "maps"),
        ("loads", "loading"),
        ("SM90", "sm_90a"),
    ],
)
def test_forms_of_one_word_share_a_term(one: str, other: str) -> None:
    assert set(document_terms(one)) & set(document_terms(other))


@pytest.mark.parametrize(("one", "other"), [("class", "clas"), ("bus", "bu"), ("ping", "p")])
def test_a_short_word_keeps_its_ending(one: str, other: str) -> None:
    assert plain_words(one) != plain_words(other)


def test_a_query_leaves_out_words_that_say_nothing() -> None:
    assert query_terms("how do I use the cuda kernel for warps") == ["warp"]


def test_a_query_for_pairs_does_not_ask_for_the_element() -> None:
    assert query_terms("e2m1x2") == ["e2m1x2"]


def test_phrases_are_one_compound_or_neighboring_stems() -> None:
    assert phrase_of("cp.async.bulk.tensor") == "cp_async_bulk_tensor"
    assert phrase_of("programmatic dependent launch") == "programmatic dependent launch"


def test_an_architecture_has_one_tag_in_all_spellings() -> None:
    assert {arch_tag(text) for text in ("sm_90a", "sm90", "SM_90", "compute_90")} == {"sm90"}
    assert arch_tag("smem") is None


@pytest.mark.parametrize("text", ["x" * 100_000, "x1" * 50_000, "a." * 50_000, "_" * 100_000])
def test_endless_names_are_cut(text: str) -> None:
    assert all(len(term) <= 250 for term in document_terms(text))
