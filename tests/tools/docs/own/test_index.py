"""The index file: built once, shared by processes, rebuilt when the corpus changes, healed."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.own import corpus
from kopt.tools.docs.own.corpus import CorpusFile, current_corpus
from kopt.tools.docs.own.index import KEPT_INDEXES
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest, SearchResult
from support.built_docs import copy_docs
from support.docs_winners import WINNER, promote

pytestmark = pytest.mark.slow  # an index is built for each
QUERY = SearchRequest(query="cp_async_wait_group", k=3)
SEARCH = """
import sys
from pathlib import Path
from kopt.config.settings import Settings
from kopt.tools.docs.records import SearchRequest
from kopt.tools.docs.query.search import search_documents
sys.stdin.readline()
settings = Settings(home=Path(sys.argv[1]))
result = search_documents(SearchRequest(query="cp_async_wait_group"), settings)
print(result.hits[0].symbol, result.degraded)
"""
LIMIT_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""
DEADLINE_S = 120
GENEROUS_BUILD_MS = 30_000
GENEROUS_QUERY_MS = 2_000


@pytest.fixture(autouse=True)
def few_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out manual, cards and notes: a build of all documents takes 1.5 s."""

    def listed(
        source: str, shown: str, paths: Iterable[Path], is_ours: bool = True
    ) -> list[CorpusFile]:
        wanted = paths if source == "headers" or not is_ours else ()
        return [CorpusFile(source, f"{shown}/{one.name}", one, is_ours) for one in sorted(wanted)]

    monkeypatch.setattr(corpus, "_listed", listed)


@pytest.fixture
def built(tmp_path: Path, built_docs: Path) -> Settings:
    """Settings of a home of this test, whose index is there already."""
    settings = Settings(home=copy_docs(built_docs, tmp_path / "home"))
    for path in _index_files(settings):
        if path.stem != current_corpus(settings).key:  # documents were edited during the run
            path.unlink()
    return settings


def _index_files(settings: Settings) -> list[Path]:
    return sorted(settings.docs_cache.glob("*.sqlite"))


def _hits(result: SearchResult) -> list[str]:
    return [hit.uid for hit in result.hits]


def test_the_first_search_builds_and_the_next_reads(own_docs: Settings) -> None:
    first = search_documents(QUERY, own_docs)
    (index,) = _index_files(own_docs)
    written = index.stat().st_mtime_ns
    second = search_documents(QUERY, own_docs)
    assert _hits(first) == _hits(second)
    assert index.stat().st_mtime_ns == written
    assert first.elapsed_ms < GENEROUS_BUILD_MS
    assert second.elapsed_ms < GENEROUS_QUERY_MS


def test_a_new_winner_is_found_without_being_told(built: Settings) -> None:
    zebra = SearchRequest(query="zebra stripe")
    assert not search_documents(zebra, built).hits
    promote(built)
    assert search_documents(zebra, built).hits[0].symbol == "zebra_sum"


def test_a_receipt_alone_renews_the_index(own_docs: Settings) -> None:
    promote(own_docs, speedup=1.25)
    zebra = SearchRequest(query="zebra stripe")
    assert "1.25x" in search_documents(zebra, own_docs).hits[0].title
    promote(own_docs, speedup=1.75)
    assert "1.75x" in search_documents(zebra, own_docs).hits[0].title


def test_processes_that_start_at_once_all_get_the_answer(own_docs: Settings) -> None:
    words = [sys.executable, "-P", "-c", SEARCH, str(own_docs.home)]
    searches = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for search in searches:
        assert search.stdin is not None
        search.stdin.write("go\n")
        search.stdin.flush()
    answers = [search.communicate(timeout=DEADLINE_S)[0] for search in searches]
    assert answers == ["cp_async_wait_group None\n"] * 4
    assert len(_index_files(own_docs)) == 1
    assert not list(own_docs.docs_cache.glob(".new-*"))


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _no_database(path: Path) -> None:
    path.write_bytes(b"this is no database\n" * 1000)


def _pages_overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def _another_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table meta (key text, value text)")
        connection.commit()


@pytest.mark.parametrize(
    "damage", [_cut_short, _emptied, _no_database, _pages_overwritten, _another_database]
)
def test_a_damaged_index_is_built_again(built: Settings, damage: Callable[[Path], None]) -> None:
    whole = search_documents(QUERY, built)
    (index,) = _index_files(built)
    damage(index)
    healed = search_documents(QUERY, built)
    assert _hits(healed) == _hits(whole)
    assert healed.degraded is None
    assert _index_files(built) == [index]
    assert search_documents(QUERY, built).degraded is None


def test_a_folder_in_place_of_the_index_does_not_stop_a_search(built: Settings) -> None:
    search_documents(QUERY, built)
    (index,) = _index_files(built)
    index.unlink()
    index.mkdir()
    result = search_documents(QUERY, built)
    assert result.hits[0].symbol == "cp_async_wait_group"
    assert result.degraded is not None


def test_a_home_that_cannot_be_written_is_said_and_searched_anyway(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    result = search_documents(QUERY, Settings(home=blocked / "home"))
    assert result.hits[0].symbol == "cp_async_wait_group"
    assert result.degraded is not None
    assert "could not be kept" in result.degraded


def test_a_full_disk_is_said_and_searched_anyway(own_docs: Settings) -> None:
    words = [sys.executable, "-P", "-c", f"{LIMIT_FILES}{SEARCH}", str(own_docs.home)]
    ending = subprocess.run(
        words, input="go\n", capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert ending.stdout.startswith("cp_async_wait_group the index could not be kept"), ending
    assert not list(own_docs.docs_cache.glob("*.sqlite"))
    assert not list(own_docs.docs_cache.glob(".new-*"))


def test_threads_that_start_at_once_all_get_the_answer(own_docs: Settings) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(search_documents, [QUERY] * 8, [own_docs] * 8))
    assert [result.degraded for result in results] == [None] * 8
    assert len({tuple(_hits(result)) for result in results}) == 1


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_searched(own_docs: Settings) -> None:
    path = promote(own_docs)
    path.unlink()
    path.mkdir()
    result = search_documents(QUERY, own_docs)
    assert result.hits[0].symbol == "cp_async_wait_group"
    assert result.degraded is not None
    assert path.name in result.degraded


def test_only_the_newest_indexes_are_kept(own_docs: Settings) -> None:
    for number in range(KEPT_INDEXES + 1):
        promote(own_docs, source=f"{WINNER}// variant {number}\n")
        search_documents(QUERY, own_docs)
    assert len(_index_files(own_docs)) == KEPT_INDEXES


def test_what_a_killed_builder_left_is_swept(built: Settings) -> None:
    search_documents(QUERY, built)
    left = built.docs_cache / ".new-killed.sqlite"
    left.write_bytes(b"half an index")
    os.utime(left, (1, 1))
    promote(built)
    search_documents(QUERY, built)
    assert not left.exists()


def test_a_users_problem_is_searched_without_a_licence(built: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "walrus_scale"
    folder.mkdir(parents=True)
    (folder / "problem.yaml").write_text("name: walrus_scale\ndescription: scales a walrus\n")
    (folder / "reference.cu").write_text('extern "C" __global__ void walrus_kernel() {}\n')
    settings = replace(built, problems=folder.parent)
    hits = search_documents(SearchRequest(query="walrus"), settings).hits
    assert {hit.path.split("/")[0] for hit in hits} == {"KOPT_PROBLEMS"}
    assert {hit.license for hit in hits} == {None}
    assert not search_documents(SearchRequest(query="walrus"), built).hits


def test_a_file_of_the_user_that_is_no_yaml_is_still_quoted(
    own_docs: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "walrus_scale"
    folder.mkdir()
    (folder / "problem.yaml").write_text("a: [1, {walrus\x1b[31m\n")
    settings = replace(own_docs, problems=folder)
    hit = search_documents(SearchRequest(query="walrus"), settings).hits[0]
    assert "walrus" in hit.text
    assert "\x1b" not in hit.text
