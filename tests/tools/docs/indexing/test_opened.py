"""Indexes that stay open: what is damage, what is not, and a file that is replaced meanwhile."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.damage import read_error
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.index_meta import connected, library_index_path
from kopt.tools.docs.indexing.opened import opened
from support.written_index import function, write_library

MINE = function("mine", "csrc/otter.cu")
VLLM = function("vllm", "csrc/walrus.cu")


def _error(connection: sqlite3.Connection, statement: str, values: int = 0) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as raised:
        connection.execute(statement, [0] * values)
    return raised.value


def _sources(collection: Collection, filters: Filters) -> set[str]:
    ids = [chunk_id for chunk_id, _score in collection.by_words(["matrix"], filters, collection)]
    return {facts.source for facts in collection.facts(ids)}


def test_a_mistake_of_kopt_and_a_lock_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    with (
        closing(sqlite3.connect(path, timeout=0)) as one,
        closing(sqlite3.connect(path, timeout=0)) as other,
    ):
        other.execute("begin exclusive")
        errors = [
            _error(one, "select * from meta"),
            _error(one, f"select 1 in ({','.join('?' * 300_000)})", 300_000),
            _error(one, "select 1", 1),
            sqlite3.OperationalError("disk I/O error"),
        ]
    assert [read_error(path, error).is_damaged for error in errors] == [False] * 4
    assert "database is locked" in str(read_error(path, errors[0]))


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    path.write_bytes(b"no database" * 1000)
    with closing(sqlite3.connect(path)) as connection:
        error = _error(connection, "select * from meta")
    assert read_error(path, error).is_damaged


@pytest.mark.slow  # 300,000 of them
def test_any_number_of_uids_is_looked_up(own_docs: Settings) -> None:
    write_library(own_docs, [MINE])
    with opened(library_index_path(own_docs), is_own=False) as library:
        uids = [MINE.uid, *(f"mine:{number}.cu#1" for number in range(300_000))]
        assert library.by_uid(uids, Filters()) == [1]


def test_an_index_that_is_replaced_while_it_is_opened_is_read_as_what_it_is(
    own_docs: Settings, tmp_path: Path
) -> None:
    path = library_index_path(own_docs)
    elsewhere = replace(own_docs, home=tmp_path / "elsewhere")
    write_library(own_docs, [MINE, VLLM])
    write_library(elsewhere, [VLLM, MINE])
    without_mine = Filters(without=("mine",))

    def replaced(where: Path) -> sqlite3.Connection:
        if library_index_path(elsewhere).exists():
            os.replace(library_index_path(elsewhere), path)
        return connected(where)

    with opened(path, is_own=False) as busy:
        assert _sources(busy, without_mine) == {"vllm"}
        with (
            patch("kopt.tools.docs.indexing.opened.connected", replaced),
            opened(path, is_own=False) as library,
        ):
            assert library.cache is not busy.cache
            assert _sources(library, without_mine) == {"vllm"}
