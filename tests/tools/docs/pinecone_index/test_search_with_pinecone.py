"""A search beside Pinecone: its list counts, and its failures only leave it out."""

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.pinecone_index.library_version import namespace_of
from kopt.tools.docs.pinecone_index.push import push_library
from kopt.tools.docs.pinecone_index.push_records import PushRequest
from kopt.tools.docs.records import SearchRequest, SearchResult
from kopt.tools.docs.search import search_documents
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
