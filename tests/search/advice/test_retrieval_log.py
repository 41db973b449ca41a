"""What was retrieved for a run is logged with it: whole lines, from several processes at once."""

import json
import resource
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.search.advice.retrieval import Asker, read_for_run, search_for_run
from kopt.search.advice.retrieval_log import FILE_NAME, Retrieval, append_retrieval, read_retrievals
from kopt.search.reports.files import export_lines
from kopt.search.reports.run_report import report_run
from kopt.tools.docs.records import SearchRequest
from support.built_docs import copy_docs
from support.scripted_runs import new_store

ASKER = Asker("run-1", "a test")


@pytest.fixture
def home(tmp_path: Path, built_docs: Path) -> Settings:
    """Return a home with one run."""
    with new_store(copy_docs(built_docs, tmp_path), "run-1"):
        return Settings(tmp_path)


@pytest.fixture
def folder(home: Settings) -> Path:
    """Return the folder of that run."""
    return home.runs / "run-1"


def retrieval(query: str = "grid") -> Retrieval:
    """Return a made-up entry."""
    return Retrieval(
        time_us=1,
        asked_by="a test",
        query=query,
        filters={},
        without=(),
        backend="embedded",
        degraded=None,
        hits=(),
        further=(),
    )


def test_search_is_logged_with_what_was_seen(home: Settings, folder: Path) -> None:
    request = SearchRequest(query="cp_async_wait_group", k=2, source="headers", without=("docs",))
    result = search_for_run(request, ASKER, home)
    (entry,) = read_retrievals(folder)
    assert (entry.query, entry.asked_by) == ("cp_async_wait_group", "a test")
    assert entry.filters == {"k": 2, "source": "headers"}
    assert entry.without == ("docs",)
    assert [hit.uid for hit in entry.hits] == [hit.uid for hit in result.hits]
    assert [hit.score for hit in entry.hits] == [hit.score for hit in result.hits]
    assert entry.hits[0].sha256 == sha256(result.hits[0].text.encode()).hexdigest()
    assert entry.further == tuple(further.uid for further in result.further)


def test_document_that_is_read_is_logged_too(home: Settings, folder: Path) -> None:
    uid = search_for_run(SearchRequest(query="warp shuffle", k=1), ASKER, home).hits[0].uid
    body = read_for_run(uid, ASKER, home).document.body
    entry = read_retrievals(folder)[-1]
    assert entry.query is None
    assert entry.hits[0].sha256 == sha256(body.encode()).hexdigest()


def test_what_the_process_hides_is_logged(home: Settings, folder: Path) -> None:
    hiding = replace(home, without_sources=("winners",))
    search_for_run(SearchRequest(query="grid"), ASKER, hiding)
    assert read_retrievals(folder)[0].without == ("winners",)


def test_what_names_no_run_is_logged_with_that_of_the_process(home: Settings, folder: Path) -> None:
    nobody = Asker(None, "a test")
    uid = search_for_run(SearchRequest(query="grid", k=1), nobody, home).hits[0].uid
    read_for_run(uid, nobody, home)
    assert read_retrievals(folder) == ()
    study = replace(home, retrieval_run="run-1")
    search_for_run(SearchRequest(query="grid", k=1), nobody, study)
    read_for_run(uid, nobody, study)
    assert [entry.hits[0].uid for entry in read_retrievals(folder)] == [uid, uid]


def test_run_of_the_process_that_is_not_there_is_an_error(home: Settings) -> None:
    study = replace(home, retrieval_run="run-2")
    with pytest.raises(ToolError, match="KOPT_RUN: no single run matches 'run-2'"):
        search_for_run(SearchRequest(query="grid"), Asker(None, "a test"), study)


def test_search_that_fails_and_search_for_no_run_log_nothing(home: Settings, folder: Path) -> None:
    with pytest.raises(ToolError, match="no word"):
        search_for_run(SearchRequest(query="..."), ASKER, home)
    with pytest.raises(ToolError, match="no run matches"):
        search_for_run(SearchRequest(query="grid"), replace(ASKER, run="run-2"), home)
    assert read_retrievals(folder) == ()


def test_text_without_utf_8_can_be_logged(home: Settings, folder: Path) -> None:
    search_for_run(SearchRequest(query="grid \udce9", symbol="\udce9"), ASKER, home)
    assert read_retrievals(folder)[0].filters == {"symbol": "?"}


def test_line_that_a_killed_process_left_is_replaced_by_the_next(folder: Path) -> None:
    append_retrieval(folder, retrieval("first"))
    with (folder / FILE_NAME).open("ab") as file:
        file.write(b'{"schema": "kopt.retr')
    assert [entry.query for entry in read_retrievals(folder)] == ["first"]
    append_retrieval(folder, retrieval("second"))
    assert [entry.query for entry in read_retrievals(folder)] == ["first", "second"]


def test_writers_at_once_append_whole_lines(folder: Path) -> None:
    """Threads do for processes: the lock is that of an open file, and each call opens its own."""
    queries = [f"{number} {'x' * 5000}" for number in range(100)]

    def append(query: str) -> None:
        append_retrieval(folder, retrieval(query))

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(append, queries))
    assert sorted(entry.query or "" for entry in read_retrievals(folder)) == sorted(queries)


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Make writes beyond `size` bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_refuses_and_leaves_no_part_of_a_line(folder: Path) -> None:
    append_retrieval(folder, retrieval("first"))
    size = (folder / FILE_NAME).stat().st_size
    with files_of_at_most(size + 10), pytest.raises(SetupError, match="cannot be logged"):
        append_retrieval(folder, retrieval("second"))
    assert (folder / FILE_NAME).stat().st_size == size


def test_entry_of_a_newer_kopt_is_refused(folder: Path) -> None:
    (folder / FILE_NAME).write_text(json.dumps({"schema": "kopt.retrieval/2"}) + "\n")
    with pytest.raises(SetupError, match="line 1 "):
        read_retrievals(folder)


def test_report_and_export_of_the_run_have_it(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        append_retrieval(store.folder, retrieval("first"))
        report = report_run(store.reader, store.folder)
        lines = [json.loads(line) for line in export_lines(store.reader, store.folder)]
    assert [entry.query for entry in report.retrievals] == ["first"]
    assert [line["query"] for line in lines if line["type"] == "retrieval"] == ["first"]
