"""The list by likeness to what functions are said to do."""

import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from kopt.tools.docs.damage import IndexFailure
from kopt.tools.docs.indexing import index_file
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.index_file import Sheet, fill
from kopt.tools.docs.indexing.index_meta import IndexMeta
from kopt.tools.docs.indexing.opened import in_memory
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.vectors import DIMENSIONS, vector_model
from support.written_index import function

EVERYTHING = Filters()
SORTS = "bitonicSortKVInPlace"
MERGES = "MergeStateKernel"


def _kernel(symbol: str, source: str = "vllm") -> Chunk:
    return function(source, f"csrc/{symbol}.cu")


def _question(text: str) -> "NDArray[np.float32]":
    model = vector_model()
    assert model is not None
    vector = model.query(text)
    assert vector is not None
    return vector


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """Give an index of a kernel that nobody described, and of three of which it is said."""
    pytest.importorskip("wordllama", reason="the extra docs is not installed")
    kernels = [_kernel("walrus"), _kernel(SORTS), _kernel(MERGES), _kernel(MERGES, "sglang")]
    card = bytes(DIMENSIONS)
    sheets = [Sheet(one, entry_of(one, one.symbol or "", one.path, card)) for one in kernels]
    with closing(sqlite3.connect(":memory:")) as opened:
        fill(opened, IndexMeta(), sheets)
        yield opened


@pytest.fixture
def collection(connection: sqlite3.Connection) -> Collection:
    return in_memory(connection)


@pytest.mark.parametrize(
    ("question", "nearest"),
    [("sorting network", {2}), ("join attention over two parts of the keys", {3, 4})],
)
def test_what_does_it_is_nearest_and_copies_are_alike(
    collection: Collection, question: str, nearest: set[int]
) -> None:
    scored = collection.by_synopsis(_question(question), EVERYTHING)
    best = scored[0][1]
    assert {chunk_id for chunk_id, cosine in scored if cosine == pytest.approx(best)} == nearest


def test_what_nobody_described_is_not_in_the_list(collection: Collection) -> None:
    scored = collection.by_synopsis(_question("sort"), EVERYTHING)
    assert {chunk_id for chunk_id, _cosine in scored} == {2, 3, 4}


def test_a_filter_leaves_its_own(collection: Collection) -> None:
    scored = collection.by_synopsis(_question("sort"), Filters(sources=("sglang",)))
    assert [chunk_id for chunk_id, _cosine in scored] == [4]


def test_lost_vectors_are_a_damaged_index(connection: sqlite3.Connection) -> None:
    connection.execute("update synopsis set rows = x'00'")
    with pytest.raises(IndexFailure):
        in_memory(connection).by_synopsis(np.ones(DIMENSIONS, np.float32), EVERYTHING)


def test_without_a_model_there_are_no_vectors() -> None:
    kernel = _kernel(SORTS)
    sheet = Sheet(kernel, entry_of(kernel, SORTS, kernel.path, bytes(DIMENSIONS)))
    with (
        patch.object(index_file, "vector_model", lambda: None),
        closing(sqlite3.connect(":memory:")) as connection,
    ):
        fill(connection, IndexMeta(), [sheet])
        assert connection.execute("select ids, rows from synopsis").fetchall() == [(b"", b"")]


def test_ids_ascend_though_synopses_are_grouped(connection: sqlite3.Connection) -> None:
    ((ids, rows),) = connection.execute("select ids, rows from synopsis")
    assert list(array("i", ids)) == [2, 3, 4]
    first, second, third = (rows[at : at + DIMENSIONS] for at in range(0, len(rows), DIMENSIONS))
    assert first != second == third
