"""The list by subject: tags that a question and a chunk have in common."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.damage import IndexFailure
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.index_file import Sheet, fill
from kopt.tools.docs.indexing.index_meta import IndexMeta
from kopt.tools.docs.indexing.opened import in_memory
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest
from kopt.tools.docs.words.tags import subjects_of
from support.written_index import function, write_library

EVERYTHING = Filters()


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    kernel = function("vllm", "csrc/a.cu").model_copy(update={"tags": ("norm", "loads")})
    loader = function("vllm", "csrc/b.cu").model_copy(update={"tags": ("loads", "norm")})
    host = function("vllm", "csrc/c.cu").model_copy(update={"tags": ("loads",), "kind": "host"})
    other = [
        function("vllm", f"csrc/other{at}.cu").model_copy(update={"tags": ()}) for at in range(9)
    ]
    sheets = [
        Sheet(chunk, entry_of(chunk, chunk.symbol or "", chunk.path, b""))
        for chunk in (kernel, loader, host, *other)
    ]
    with closing(sqlite3.connect(":memory:")) as opened:
        fill(opened, IndexMeta(), sheets)
        yield opened


@pytest.fixture
def collection(connection: sqlite3.Connection) -> Collection:
    return in_memory(connection)


def test_what_is_tagged_so_first_comes_first_and_host_code_last(collection: Collection) -> None:
    assert [at for at, _score in collection.by_subject(["loads"], EVERYTHING)] == [2, 1, 3]


def test_a_rare_tag_counts_more_than_a_common_one(collection: Collection) -> None:
    found = dict(collection.by_subject(["loads", "norm"], EVERYTHING))
    assert found[1] > found[2] > found[3]


def test_a_tag_that_nothing_has_finds_nothing(collection: Collection) -> None:
    assert collection.by_subject(["fft"], EVERYTHING) == []


def test_damaged_tags_are_a_damaged_index(connection: sqlite3.Connection) -> None:
    connection.execute("update tag set list = x'00'")
    with pytest.raises(IndexFailure):
        in_memory(connection).by_subject(["loads"], EVERYTHING)


@pytest.mark.slow  # an index is built
def test_code_is_found_by_a_subject_that_it_spells_in_other_words(tmp_path: Path) -> None:
    (tag,) = subjects_of("popc")
    assert "popc" not in tag
    about = function("vllm", "csrc/count_lanes.cu").model_copy(update={"tags": (tag,)})
    chunks = [about, *(function("vllm", f"csrc/row{at}.cu") for at in range(20))]
    settings = Settings(home=tmp_path)
    write_library(settings, chunks)
    hits = search_documents(SearchRequest(query="popc", source="vllm"), settings).hits
    assert [hit.symbol for hit in hits] == ["count_lanes"]
