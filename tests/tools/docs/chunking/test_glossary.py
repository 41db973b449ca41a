"""Meanings of names: words that people ask with, for names that have none of them."""

import re
from importlib.resources import files

import pytest

from kopt.tools.docs.indexing.entries import GLOSS_CHARACTERS, card_of
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.words.glossary import gloss_of, gloss_of_name, gloss_of_signature


def _named(symbol: str | None, path: str = "csrc/a.cu", language: str | None = "cuda") -> Chunk:
    return Chunk(
        source="acme",
        path=path,
        title="a",
        symbol=symbol,
        kind="kernel",
        language=language,
        start_line=1,
        end_line=9,
        body="",
    )


@pytest.mark.parametrize(
    "symbol", ["l2norm_fwd_kernel", "L2NormForward", "fusedL2norm", "Owner::l2_norm"]
)
def test_a_part_of_a_name_is_explained_however_it_is_spelled(symbol: str) -> None:
    assert "Euclidean length" in gloss_of(_named(symbol))


def test_a_name_that_only_contains_the_letters_is_not_explained() -> None:
    assert "generate one token" not in gloss_of(_named("decoder_block"))


def test_the_longest_run_of_parts_comes_first_and_its_parts_follow() -> None:
    gloss = gloss_of(_named("repetition_bad_words_kernel"))
    assert gloss.startswith("forbid ban phrases")
    assert "make repeated tokens less likely" in gloss


def test_the_file_explains_what_the_symbol_does_not() -> None:
    operator = _named("Kernel::operator()", "include/top_p.h")
    assert "nucleus" in gloss_of(operator)
    assert "nucleus" in gloss_of_name(operator)


def test_a_name_that_says_something_stands_alone_on_the_card() -> None:
    both = _named("l2norm", "csrc/top_p.cu")
    assert "nucleus" in gloss_of(both)
    assert "nucleus" not in gloss_of_name(both)


def test_each_meaning_is_said_once() -> None:
    assert gloss_of(_named("cumsum, cumsum_kernel", "csrc/cumsum.cu")).count("running sum") == 1


@pytest.mark.parametrize(
    "chunk", [_named("cumsum", language=None), _named(None), _named("xyzzy", "csrc/plugh.cu")]
)
def test_prose_and_names_without_meaning_have_no_gloss(chunk: Chunk) -> None:
    assert gloss_of(chunk) == gloss_of_name(chunk) == ""


def test_a_long_name_leaves_the_card_short() -> None:
    long = _named("softmax_topk_rope_norm_quant_gemm_cumsum_gather_scatter_sort_decode_moe")
    assert len(gloss_of_name(long)) > GLOSS_CHARACTERS
    assert len(card_of(long)) < 3 * GLOSS_CHARACTERS


def test_parameters_are_explained_too() -> None:
    kernel = _named("f").model_copy(update={"signature": "void f(int const* cu_seqlens, int n)"})
    assert "where each packed sequence begins" in gloss_of_signature(kernel)
    assert gloss_of_signature(_named("f")) == ""


def test_no_entry_is_there_twice_in_two_spellings() -> None:
    text = files("kopt.tools.docs.words").joinpath("glossary.yaml").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    entries = [line.split(": ")[0].replace("_", "") for line in lines]
    assert len(entries) == len(set(entries))
    assert all(re.fullmatch(r"[a-z0-9]+", entry) for entry in entries)
