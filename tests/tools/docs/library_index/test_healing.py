"""A library index that is damaged, replaced or outdated while searches go on."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.index_meta import library_index_path, read_meta
from kopt.tools.docs.indexing.opened import opened
from kopt.tools.docs.library_index.assembly import OUTDATED, REBUILT, REMOVED
from kopt.tools.docs.library_index.choices import forget_source
from kopt.tools.docs.library_index.parts import Parts
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest, SearchResult
from support.built_docs import copy_docs
from support.fake_harvest import ALPHA, fake_harvest, kernel

QUERY = SearchRequest(query="walrus row", source="alpha,beta")
OWN = SearchRequest(query="cp_async_wait_group")


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _pages_overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def _records_overwritten(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update body set records = x'00'")
        connection.commit()


def _postings_overwritten(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("insert or replace into posting values ('walrus', 3, x'00')")
        connection.commit()


def _vectors_cut(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update vector set rows = x'00'")
        connection.commit()


def _sources_no_json(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update meta set facts = json_replace(facts, '$.sources', '[{')")
        connection.commit()


DAMAGES = [
    _cut_short,
    _emptied,
    _pages_overwritten,
    _records_overwritten,
    _postings_overwritten,
    _vectors_cut,
    _sources_no_json,
]


def _places(result: SearchResult) -> list[tuple[str, str]]:
    return [(hit.uid, hit.text) for hit in result.hits]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, built_docs: Path) -> Settings:
    """Return a home with a library, which each test of this file leaves whole."""
    settings = Settings(home=copy_docs(built_docs, tmp_path_factory.mktemp("library") / "home"))
    fake_harvest().build(settings)
    return settings


@pytest.mark.slow  # an index for each
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_made_again_and_that_is_said_once(
    built: Settings, damage: Callable[[Path], None]
) -> None:
    whole = search_documents(QUERY, built)
    assert len(whole.hits) == 3
    damage(library_index_path(built))
    healed = search_documents(QUERY, built)
    assert _places(healed) == _places(whole)
    assert healed.degraded is not None
    assert REBUILT in healed.degraded
    assert search_documents(QUERY, built).degraded == whole.degraded


@pytest.mark.slow  # makes an index
def test_without_parts_kopts_own_documents_answer(own_docs: Settings) -> None:
    fake_harvest().build(own_docs)
    for part in Parts(own_docs).folder.iterdir():
        part.write_bytes(b"no part" * 1000)
    _pages_overwritten(library_index_path(own_docs))
    first = search_documents(OWN, own_docs)
    assert first.hits[0].symbol == "cp_async_wait_group"
    assert first.degraded == REMOVED
    again = search_documents(OWN, own_docs)
    assert again.degraded is None
    assert again.offer is not None


def test_an_index_that_cannot_say_its_sources_loses_none_but_the_forgotten(
    own_docs: Settings,
) -> None:
    fake_harvest().build(own_docs)
    path = library_index_path(own_docs)
    _sources_no_json(path)
    forget_source("alpha", own_docs, lambda progress: None)
    assert [one.source for one in read_meta(path).sources] == ["beta"]


@pytest.mark.slow  # makes an index twice
def test_a_search_under_way_keeps_the_index_that_it_began_with(own_docs: Settings) -> None:
    library = fake_harvest(alpha=1, beta=0)
    library.build(own_docs)
    path = library_index_path(own_docs)
    library.files[ALPHA] = {"csrc/gamma.cu": kernel("gamma")}
    with opened(path, is_own=False) as reader:
        before = reader.by_name("alphaa_kernel", Filters())
        library.build(own_docs)
        assert reader.by_name("alphaa_kernel", Filters()) == before == [1]
        assert reader.whole(1).symbol == "alphaa_kernel"
    with opened(path, is_own=False) as reader:
        assert reader.by_name("alphaa_kernel", Filters()) == []
        assert reader.whole(1).symbol == "gamma_kernel"


def test_an_index_of_another_version_is_not_searched_and_that_is_said(own_docs: Settings) -> None:
    fake_harvest(alpha=1, beta=0).build(own_docs)
    with closing(sqlite3.connect(library_index_path(own_docs))) as connection:
        connection.execute(
            "update meta set facts = json_set(facts, '$.key', 'older', '$.version', 'older')"
        )
        connection.commit()
    result = search_documents(OWN, own_docs)
    assert result.hits[0].symbol == "cp_async_wait_group"
    assert result.degraded == OUTDATED
    fake_harvest(alpha=1, beta=0).build(own_docs)
    assert search_documents(QUERY, own_docs).hits[0].symbol == "alphaa_kernel"
