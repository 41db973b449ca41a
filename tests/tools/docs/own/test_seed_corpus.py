"""The documents written for kopt: small, sourced, linked, and in its own words for families."""

import re
from collections.abc import Iterator
from typing import get_args

import pytest
from pydantic import BaseModel

from kopt.kernels.bench_result import Latency
from kopt.kernels.compile_result import KernelResources, Occupancy
from kopt.kernels.counters import BufferTraffic, ExecutionCounters, LaunchCounters
from kopt.kernels.families import FAMILIES
from kopt.kernels.profile_result import (
    BottleneckName,
    LaunchProfile,
    MeasuredTime,
    ProfileResult,
    SuspectName,
    TensorTraffic,
)
from kopt.kernels.status import Status
from kopt.tools.docs.own.corpus import Corpus, CorpusFile
from kopt.tools.docs.own.intrinsic_cards import DOCUMENTS, Card, read_cards
from kopt.tools.docs.own.own_chunks import KNOWN_ARCHS, make_chunks
from kopt.tools.docs.records import Chunk
from support.intrinsic_files import DOCS, all_cards

MOST_BYTES = 300_000
FACTS: tuple[type[BaseModel], ...] = (
    *(BufferTraffic, ExecutionCounters, KernelResources, LaunchCounters, LaunchProfile, Latency),
    *(MeasuredTime, Occupancy, ProfileResult, TensorTraffic),
)
NOTES = [path for path in sorted((DOCS / "notes").glob("*.md")) if path.stem != "families"]


def _chunks(source: str) -> Iterator[Chunk]:
    folder = DOCS / source
    files = tuple(
        CorpusFile(source, f"tools/docs/{source}/{path.name}", path)
        for path in sorted(folder.iterdir())
        if path.suffix in (".md", ".yaml") and path.stem != "families"
    )
    return iter(make_chunks(Corpus(files, "key")))


INTRINSICS = list(_chunks("intrinsics"))
TECHNIQUES = list(_chunks("notes"))


def test_cards_and_notes_are_many_and_small() -> None:
    folders = (DOCS / "intrinsics", DOCS / "notes")
    written = [path for folder in folders for path in folder.iterdir()]
    assert len(INTRINSICS) >= 150
    assert len(TECHNIQUES) >= 120
    assert sum(path.stat().st_size for path in written) < MOST_BYTES


def test_no_card_and_no_note_has_the_name_of_another() -> None:
    names = [card.name for card in all_cards()] + [chunk.title for chunk in TECHNIQUES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.name)
def test_a_card_names_its_document_and_section(card: Card) -> None:
    document, _comma, section = card.source.partition(", ")
    assert document in DOCUMENTS
    assert section


def test_a_card_is_quoted_whole_with_its_form_its_example_and_an_address() -> None:
    (card,) = [card for card in all_cards() if card.name == "cp.async.wait_group"]
    (chunk,) = [chunk for chunk in INTRINSICS if chunk.symbol == card.name]
    assert card.form in chunk.body
    assert card.example.strip() in chunk.body
    assert "https://docs.nvidia.com/cuda/parallel-thread-execution/" in chunk.body
    assert (chunk.kind, chunk.arch) == ("intrinsic", KNOWN_ARCHS)


def test_a_card_is_bound_to_the_architectures_of_its_targets() -> None:
    arch = {chunk.title: chunk.arch for chunk in INTRINSICS}
    assert arch["intrinsic wgmma.fence"] == ("sm90",)
    assert arch["intrinsic cp.async.bulk.shared.global"] == KNOWN_ARCHS[3:]
    assert arch["intrinsic redux.sync.max.f32"] == ("sm100", "sm103")
    assert arch["intrinsic __shfl_xor_sync"] == ()


def test_architectures_are_in_ascending_order() -> None:
    for chunk in (*INTRINSICS, *TECHNIQUES):
        numbers = [int(arch.removeprefix("sm")) for arch in chunk.arch]
        assert numbers == sorted(set(numbers)), chunk.title


def test_number_types_are_known_to_the_filter() -> None:
    dtypes = {chunk.title: chunk.dtype for chunk in INTRINSICS}
    assert "fp4" in dtypes["intrinsic cvt.rn.satfinite.e2m1x2.f32"]
    assert "bf16" in dtypes["intrinsic __hfma2"]


def test_a_card_has_the_lines_where_it_stands() -> None:
    for chunk in INTRINSICS:
        lines = (DOCS / "intrinsics" / chunk.path.rsplit("/", 1)[1]).read_text("utf-8").split("\n")
        name = chunk.title.removeprefix("intrinsic ")
        assert lines[chunk.start_line - 1].startswith("- name: ")
        assert name in lines[chunk.start_line - 1]
        assert lines[chunk.end_line - 1].startswith("  source: ")


def test_a_key_that_no_card_has_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        list(read_cards("- {name: a, colour: red}"))


def test_every_family_has_notes_in_a_file_of_its_name() -> None:
    assert [path.stem for path in NOTES] == sorted(FAMILIES)
    assert {chunk.tags[0] for chunk in TECHNIQUES} == set(FAMILIES)


@pytest.mark.parametrize("note", TECHNIQUES, ids=lambda note: note.title)
def test_a_note_says_when_what_how_to_measure_and_from_where(note: Chunk) -> None:
    assert note.kind == "note"
    keys = re.findall(r"(?m)^(\w+): ", note.body)
    order = ["When", "Change", "Measure", "Gain", "Cannot", "Pitfall", "Cards", "Source"]
    assert {"When", "Change", "Measure", "Source"} <= set(keys)
    assert {"Cannot", "Pitfall"} & set(keys)
    assert set(keys) <= set(order)
    assert len(keys) == len(set(keys))


def test_a_note_links_to_cards_that_exist() -> None:
    names = {card.name for card in all_cards()}
    for note in TECHNIQUES:
        for line in re.findall(r"(?m)^Cards: (.*)$", note.body):
            linked = set(re.findall(r"`([^`]+)`", line))
            assert linked, note.title
            assert linked <= names, (note.title, linked - names)


def test_what_a_note_tells_to_measure_has_the_name_that_kopt_gives_it() -> None:
    known = {name for record in FACTS for name in record.model_fields}
    known |= {str(status) for status in Status}
    known |= {*get_args(BottleneckName), *get_args(SuspectName), "kopt check", "kopt bench"}
    known |= {"pdl: true", "tune", "ldg", "stg"}
    for note in TECHNIQUES:
        for line in re.findall(r"(?m)^Measure: (.*)$", note.body):
            unknown = set(re.findall(r"`([^`]+)`", line)) - known
            assert not unknown, (note.title, unknown)
