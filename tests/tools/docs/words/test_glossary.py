"""The glossary and the synopses: what names mean."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from kopt.tools.docs.indexing.entries import GLOSS_CHARACTERS, card_of
from kopt.tools.docs.library.pins import pins
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.words.glossary import (
    WRITTEN_OVER,
    gloss_of,
    gloss_of_name,
    gloss_of_signature,
    synopses_of,
    synopses_without_code,
)


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


MOST_WORDS = 60


def _vllm(symbol: str | None, path: str = "csrc/a.cu", language: str | None = "cuda") -> Chunk:
    return _named(symbol, path, language).model_copy(update={"source": "vllm"})


def test_what_a_kernel_does_stands_in_its_gloss_and_on_its_card() -> None:
    kernel = _vllm("MergeStateKernel")
    (synopsis,) = synopses_of(kernel)
    assert "disjoint sets of keys" in synopsis
    assert gloss_of(kernel).startswith(synopsis)
    assert synopsis in card_of(kernel)


def test_a_longer_name_is_another_kernel() -> None:
    assert synopses_of(_vllm("MyMergeStateKernel")) == []


@pytest.mark.parametrize("symbol", ["SSDKernel.kernel", "SSDKernel::kernel"])
def test_a_member_is_known_by_its_owner_however_they_are_joined(symbol: str) -> None:
    assert "Mamba 2" in synopses_of(_vllm(symbol))[0]
    assert synopses_of(_vllm("kernel")) == []


def test_a_name_that_many_files_have_is_told_apart_by_its_file() -> None:
    with_multicast = _vllm("gemm_device", "cute/tutorial/03_mma_tma_multicast_sm100.cu")
    assert "multicast" in synopses_of(with_multicast)[0]
    assert synopses_of(_vllm("gemm_device")) == []


def test_what_is_said_of_the_file_holds_though_the_name_is_described_too() -> None:
    name = "CollectiveEpilogue::store"
    (of_the_file,) = synopses_of(_vllm(name, "collective/sm90_epilogue_tma_warpspecialized.hpp"))
    (of_the_name,) = synopses_of(_vllm(name, "attention/hopper/epilogue.cuh"))
    assert "fusion tree" in of_the_file
    assert "attention output" in of_the_name


def test_each_of_several_functions_is_told() -> None:
    assert len(synopses_of(_vllm("im2col_kernel, helper, col2im_kernel"))) == 2


@pytest.mark.parametrize("chunk", [_vllm("im2col_kernel", language=None), _vllm(None)])
def test_prose_and_code_without_a_name_have_none(chunk: Chunk) -> None:
    assert synopses_of(chunk) == []


@pytest.mark.parametrize("source", ["mine", "lmdeploy", "problems"])
def test_code_that_nobody_described_has_none_though_it_has_the_name(source: str) -> None:
    kernel = _vllm("MergeStateKernel")
    of_others = kernel.model_copy(update={"source": source})
    assert synopses_of(kernel)
    assert synopses_of(of_others) == []
    assert "disjoint" not in gloss_of(of_others)


def test_a_synopsis_is_one_line_of_some_words_and_no_name_has_two() -> None:
    folder = Path(str(files("kopt.tools.docs.words")))
    lines = [
        line for path in folder.glob("synopses/*") for line in path.read_text("utf-8").splitlines()
    ]
    entries = [line for line in lines if line and not line.startswith("#")]
    written = yaml.safe_load("\n".join(lines))
    assert len(written) == len(entries)
    assert all(2 <= len(said.split()) <= MOST_WORDS for said in written.values())


def test_synopses_were_written_over_the_pinned_versions() -> None:
    """Who moves a pin builds, mends what the build names, reads what changed, and says so here."""
    pinned = pins().packages
    assert {source: pinned[source].version for source in WRITTEN_OVER} == WRITTEN_OVER


def test_what_no_library_has_any_more_is_named() -> None:
    kernel = _vllm("MergeStateKernel")
    libraries = [kernel.model_copy(update={"source": source}) for source in WRITTEN_OVER]
    lost = synopses_without_code(libraries)
    assert "MergeStateKernel" not in lost
    assert "SSDKernel.kernel" in lost
    of_a_user = _vllm("SSDKernel.kernel").model_copy(update={"source": "mine"})
    assert synopses_without_code([*libraries, of_a_user]) == lost


def test_nothing_is_missed_while_a_library_is_not_built() -> None:
    assert synopses_without_code([_vllm("MergeStateKernel")]) == []
