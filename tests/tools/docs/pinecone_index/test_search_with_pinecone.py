"""A search beside Pinecone: its list counts, and its failures only leave it out."""

import os
import sqlite3
from contextlib import closing

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.indexing.index_meta import library_index_path
from kopt.tools.docs.pinecone_index.push import push_library
from kopt.tools.docs.pinecone_index.push_plan import namespace_of
from kopt.tools.docs.pinecone_index.push_records import ANY_ARCH, PushRequest
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest, SearchResult
from support.pinecone_service import Fault, PineconeService
from support.quick_pacing import QuickPacing


@pytest.fixture
def pushed(service: PineconeService, settings: Settings) -> PineconeService:
    """The service once it has the library, of which it finds the function `rope` alone."""
    push_library(PushRequest(), settings, lambda progress: None, QuickPacing().pacing)
    assert service.index is not None
    records = service.index.namespaces[namespace_of(settings) or ""]
    for record in records.values():
        record["source"] = "vllm" if "rope" in record["_id"] else "elsewhere"
    service.asked.clear()
    return service


def search(settings: Settings, backend: str = "auto") -> SearchResult:
    """Search the libraries for what all of the functions say."""
    request = SearchRequest.model_validate(
        {"query": "normalizes the rows of a matrix", "source": "flashinfer,vllm"}
        | {"backend": backend}
    )
    return search_documents(request, settings)


def symbols(result: SearchResult) -> list[str | None]:
    """Return the symbols of the hits, best first."""
    return [hit.symbol for hit in result.hits]


def test_what_pinecone_ranks_first_moves_up(pushed: PineconeService, settings: Settings) -> None:
    alone = search(settings, "embedded")
    assert (alone.backend, pushed.asked) == ("embedded", [])
    together = search(settings)
    assert (together.backend, together.degraded) == ("embedded+pinecone", alone.degraded)
    assert len(pushed.paths("/search")) == 1
    assert symbols(alone)[0] != "rope"
    assert symbols(together)[0] == "rope"


def test_an_answer_that_nobody_can_read_is_named_and_leaves_no_traceback(
    pushed: PineconeService, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    pushed.faults = [Fault(200, {"content-encoding": "gzip"}, b"no gzip", on="/search")]
    result = search(settings)
    assert (result.backend, len(result.hits)) == ("embedded", 3)
    assert "stumbles over what answered" in (result.degraded or "")
    assert "Traceback" not in capfd.readouterr().err


def test_when_pinecone_fails_the_answer_is_the_embedded_one_and_says_so(
    pushed: PineconeService, settings: Settings
) -> None:
    alone = search(settings, "embedded")
    pushed.faults = [Fault(401)]
    for _ in range(2):  # the second while it rests
        result = search(settings)
        assert result.backend == "embedded"
        assert "set PINECONE_API_KEY" in (result.degraded or "")
        assert [hit.uid for hit in result.hits] == [hit.uid for hit in alone.hits]
    assert len(pushed.asked) == 1


def test_what_pinecone_finds_and_this_machine_lacks_is_left_out(
    pushed: PineconeService, settings: Settings
) -> None:
    assert pushed.index is not None
    stranger = {"_id": "vllm:gone.cu#7", "chunk_text": "rows of a matrix " * 99, "source": "vllm"}
    pushed.index.upsert(namespace_of(settings) or "", [stranger])
    result = search(settings)
    assert result.backend == "embedded+pinecone"
    assert set(symbols(result)) == {"norm", "rope", "topk"}


def test_pinecone_is_asked_for_all_that_an_architecture_runs(
    pushed: PineconeService, settings: Settings
) -> None:
    request = SearchRequest(query="rows of a matrix", source="vllm", arch="sm_90a")
    search_documents(request, settings)
    (asked,) = pushed.paths("/search")
    archs = asked.json["query"]["filter"]["arch"]["$in"]
    assert {"sm80", "sm90", ANY_ARCH} <= set(archs)
    assert "sm100" not in archs


def test_an_index_that_cannot_say_its_sources_has_no_namespace(settings: Settings) -> None:
    assert namespace_of(settings) is not None
    path = library_index_path(settings)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update meta set facts = '[{'")
        connection.commit()
    os.utime(path, ns=(1, 1))
    assert namespace_of(settings) is None
