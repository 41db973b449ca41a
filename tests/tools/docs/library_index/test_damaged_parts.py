"""What builds keep when it is damaged or in use: never a traceback, never a loss."""

import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.index_meta import library_folder, library_index_path
from kopt.tools.docs.library_index.assembly import BUILDING, REMOVED
from kopt.tools.docs.library_index.parts import Parts
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest
from support.fake_harvest import fake_harvest

pytestmark = pytest.mark.slow  # an index damaged in every part

QUERY = SearchRequest(query="walrus row")


def _no_zlib(folder: Path) -> None:
    _overwrite(folder, b"x")


def _no_json(folder: Path) -> None:
    _overwrite(folder, zlib.compress(b"{"))


def _another_shape(folder: Path) -> None:
    _overwrite(folder, zlib.compress(b'[{"colour": 1}]'))


def _gone(folder: Path) -> None:
    for part in folder.iterdir():
        part.unlink()


DAMAGES = [_no_zlib, _no_json, _another_shape, _gone]


def _overwrite(folder: Path, data: bytes) -> None:
    for part in folder.iterdir():
        part.write_bytes(data)


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
    damage(Parts(own_docs).folder)
    assert library.build(own_docs, fresh=fresh).chunks == 3
    assert library.build(own_docs).reused_files == 3
    assert search_documents(QUERY, own_docs).hits[0].source in {"alpha", "beta"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_search_removes_an_index_that_damaged_parts_cannot_make_again(
    own_docs: Settings, damage: Callable[[Path], None]
) -> None:
    fake_harvest().build(own_docs)
    _ruined(library_index_path(own_docs))
    damage(Parts(own_docs).folder)
    assert search_documents(QUERY, own_docs).degraded == REMOVED
    assert search_documents(QUERY, own_docs).degraded is None


def test_a_build_mends_an_index_that_does_not_say_its_sources(own_docs: Settings) -> None:
    library = fake_harvest()
    library.build(own_docs)
    with closing(sqlite3.connect(library_index_path(own_docs))) as connection:
        connection.execute("update meta set facts = json_replace(facts, '$.sources', 5)")
        connection.commit()
    assert library.build(own_docs).chunks == 3


def test_a_build_that_cannot_tell_what_the_index_was_made_of_makes_it_again(
    own_docs: Settings,
) -> None:
    library = fake_harvest()
    library.build(own_docs)
    (library_folder(own_docs) / "made_of.json").write_text('[{"colour": 1}]')
    _ruined(library_index_path(own_docs))
    assert search_documents(QUERY, own_docs).degraded == REMOVED
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
    with patch("kopt.tools.docs.indexing.opened.connected", side_effect=locked):
        found = search_documents(QUERY, own_docs)
    assert "cannot be read now (database is locked)" in (found.degraded or "")
    assert library_index_path(own_docs).stat().st_ino == before
