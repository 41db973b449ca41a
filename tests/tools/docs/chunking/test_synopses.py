"""Synopses: what a kernel does, said of its whole name alone."""

from importlib.resources import files

import pytest
import yaml

from kopt.tools.docs.indexing.entries import card_of
from kopt.tools.docs.library.pins import pins
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.words.glossary import (
    SYNOPSES,
    WRITTEN_OVER,
    gloss_of,
    synopses_of,
    synopses_without_code,
)

MOST_WORDS = 60


def _named(symbol: str | None, path: str = "csrc/a.cu", language: str | None = "cuda") -> Chunk:
    return Chunk(
        source="vllm",
        path=path,
        title="a",
        symbol=symbol,
        kind="kernel",
        language=language,
        start_line=1,
        end_line=9,
        body="",
    )


def test_what_a_kernel_does_stands_in_its_gloss_and_on_its_card() -> None:
    kernel = _named("MergeStateKernel")
    (synopsis,) = synopses_of(kernel)
    assert "disjoint sets of keys" in synopsis
    assert gloss_of(kernel).startswith(synopsis)
    assert synopsis in card_of(kernel)


def test_a_longer_name_is_another_kernel() -> None:
    assert synopses_of(_named("MyMergeStateKernel")) == []


@pytest.mark.parametrize("symbol", ["SSDKernel.kernel", "SSDKernel::kernel"])
def test_a_member_is_known_by_its_owner_however_they_are_joined(symbol: str) -> None:
    assert "Mamba 2" in synopses_of(_named(symbol))[0]
    assert synopses_of(_named("kernel")) == []


def test_a_name_that_many_files_have_is_told_apart_by_its_file() -> None:
    with_multicast = _named("gemm_device", "cute/tutorial/03_mma_tma_multicast_sm100.cu")
    assert "multicast" in synopses_of(with_multicast)[0]
    assert synopses_of(_named("gemm_device")) == []


def test_what_is_said_of_the_file_holds_though_the_name_is_described_too() -> None:
    name = "CollectiveEpilogue::store"
    (of_the_file,) = synopses_of(_named(name, "collective/sm90_epilogue_tma_warpspecialized.hpp"))
    (of_the_name,) = synopses_of(_named(name, "attention/hopper/epilogue.cuh"))
    assert "fusion tree" in of_the_file
    assert "attention output" in of_the_name


def test_each_of_several_functions_is_told() -> None:
    assert len(synopses_of(_named("im2col_kernel, helper, col2im_kernel"))) == 2


@pytest.mark.parametrize("chunk", [_named("im2col_kernel", language=None), _named(None)])
def test_prose_and_code_without_a_name_have_none(chunk: Chunk) -> None:
    assert synopses_of(chunk) == []


@pytest.mark.parametrize("source", ["mine", "lmdeploy", "problems"])
def test_code_that_nobody_described_has_none_though_it_has_the_name(source: str) -> None:
    kernel = _named("MergeStateKernel")
    of_others = kernel.model_copy(update={"source": source})
    assert synopses_of(kernel)
    assert synopses_of(of_others) == []
    assert "disjoint" not in gloss_of(of_others)


def test_a_synopsis_is_one_line_of_some_words_and_no_name_has_two() -> None:
    folder = files("kopt.tools.docs.words")
    lines = [
        line for path in SYNOPSES for line in folder.joinpath(path).read_text("utf-8").splitlines()
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
    kernel = _named("MergeStateKernel")
    libraries = [kernel.model_copy(update={"source": source}) for source in WRITTEN_OVER]
    lost = synopses_without_code(libraries)
    assert "MergeStateKernel" not in lost
    assert "SSDKernel.kernel" in lost
    of_a_user = _named("SSDKernel.kernel").model_copy(update={"source": "mine"})
    assert synopses_without_code([*libraries, of_a_user]) == lost


def test_nothing_is_missed_while_a_library_is_not_built() -> None:
    assert synopses_without_code([_named("MergeStateKernel")]) == []
