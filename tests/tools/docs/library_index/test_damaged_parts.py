"""What builds keep when it is damaged, locked or in use: never a traceback, never a loss."""

import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from kopt.config.errors import SetupError
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.index_meta import library_folder, library_index_path, parts_path
from kopt.tools.docs.library_index import parts as parts_module
from kopt.tools.docs.library_index.assembly import BUILDING, REMOVED
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest
from support.fake_harvest import fake_harvest

pytestmark = pytest.mark.slow  # an index damaged in every part

QUERY = SearchRequest(query="walrus row")


def _records_no_zlib(path: Path) -> None:
    _execute(path, "update part set entries = x'00'")


def _records_no_json(path: Path) -> None:
    blob = zlib.compress(b"{")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update part set entries = ?", (blob,))
        connection.commit()


def _facts_of_another_shape(path: Path) -> None:
    _execute(path, """update source set facts = '{"colour": 1}'""")


def _pages_overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def _second_page_overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:8192] = b"\xa5" * 4096
    path.write_bytes(data)


DAMAGES = [
    _records_no_zlib,
    _records_no_json,
    _facts_of_another_shape,
    _pages_overwritten,
    _second_page_overwritten,
]


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def _ruined(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_build_does_without_damaged_parts(
    own_docs: Settings, damage: Callable[[Path], None], fresh: bool
) -> None:
    library = fake_harvest()
    library.build(own_docs)
    _ruined(library_index_path(own_docs))
    damage(parts_path(own_docs))
    assert library.build(own_docs, fresh=fresh).chunks == 3
    assert library.build(own_docs).reused_files == 3
    assert search_documents(QUERY, own_docs).hits[0].source in {"alpha", "beta"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_search_removes_an_index_that_damaged_parts_cannot_make_again(
    own_docs: Settings, damage: Callable[[Path], None]
) -> None:
    fake_harvest().build(own_docs)
    _ruined(library_index_path(own_docs))
    damage(parts_path(own_docs))
    assert search_documents(QUERY, own_docs).degraded == REMOVED
    assert search_documents(QUERY, own_docs).degraded is None


def test_a_build_mends_an_index_that_does_not_say_its_sources(own_docs: Settings) -> None:
    library = fake_harvest()
    library.build(own_docs)
    _execute(library_index_path(own_docs), "update meta set value = '5' where key = 'sources'")
    assert library.build(own_docs).chunks == 3


def test_locked_parts_stay_and_that_is_one_line(
    own_docs: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = fake_harvest()
    library.build(own_docs)
    path = parts_path(own_docs)
    before = path.stat().st_ino
    monkeypatch.setattr(parts_module, "LOCKED_AFTER_S", 0.0)
    with closing(sqlite3.connect(path)) as other:
        other.execute("begin exclusive")
        with pytest.raises(SetupError, match="database is locked"):
            library.build(own_docs)
        _ruined(library_index_path(own_docs))
        assert "database is locked" in (search_documents(QUERY, own_docs).degraded or "")
    assert path.stat().st_ino == before
    assert library.build(own_docs).reused_files == 3


def test_a_search_does_not_wait_for_a_build(own_docs: Settings) -> None:
    fake_harvest().build(own_docs)
    _ruined(library_index_path(own_docs))
    with file_lock(library_folder(own_docs) / "lock"):
        assert BUILDING in (search_documents(QUERY, own_docs).degraded or "")
    assert library_index_path(own_docs).exists()


def test_an_index_that_cannot_be_read_now_stays(own_docs: Settings) -> None:
    fake_harvest().build(own_docs)
    before = library_index_path(own_docs).stat().st_ino
    locked = sqlite3.OperationalError("database is locked")
    with patch("kopt.tools.docs.indexing.open_indexes.open_index", side_effect=locked):
        found = search_documents(QUERY, own_docs)
    assert "cannot be read now (database is locked)" in (found.degraded or "")
    assert library_index_path(own_docs).stat().st_ino == before
