"""What Pinecone is asked, and what its answer becomes."""

import json
from dataclasses import replace

import pytest

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.pinecone_index.asking import PineconeBackend, pinecone_backend
from kopt.tools.docs.pinecone_index.push_plan import namespace_of
from kopt.tools.docs.pinecone_index.push_records import remote_id
from support.pinecone_service import Fault, PineconeService, pinecone_service
from support.pinecone_store import Fields, dense_index, records_index

PATIENT_S = 30.0
"""A busy machine may need seconds to import the SDK."""
EVERYWHERE = Filters(("flashinfer", "vllm"))


def fill(service: PineconeService, settings: Settings, *records: Fields) -> str:
    """Store records in the namespace of the library, and return it."""
    namespace = namespace_of(settings)
    assert namespace is not None and service.index is not None
    field = service.index.text_field
    made = [
        {field: "norm", "source": "vllm", "kind": "kernel", "arch": ["any"]} | r for r in records
    ]
    service.index.upsert(namespace, made)
    return namespace


def found(settings: Settings, filters: Filters = EVERYWHERE) -> tuple[str, ...]:
    """Return what a fresh backend finds for "norm"."""
    return PineconeBackend(settings, PATIENT_S).search("norm", filters, 20)


def test_the_records_api_is_asked_once_and_reranks(
    service: PineconeService, settings: Settings
) -> None:
    best = {"_id": "vllm:a.cu#1", "chunk_text": "norm of rows, by far the longest text"}
    namespace = fill(service, settings, best, {"_id": "vllm:b.cu#1"})
    assert found(settings) == ("vllm:a.cu#1", "vllm:b.cu#1")
    (asked,) = service.paths("/search")
    assert asked.path == f"/records/namespaces/{namespace}/search"
    assert asked.json == {
        "query": {
            "top_k": 30,
            "inputs": {"text": "norm"},
            "filter": {"source": {"$in": ["flashinfer", "vllm"]}},
        },
        "fields": ["chunk_text"],
        "rerank": {
            "model": "bge-reranker-v2-m3",
            "rank_fields": ["chunk_text"],
            "top_n": 20,
            "parameters": {"truncate": "END"},
        },
    }
    assert "source_tag=kopt" in asked.headers["user-agent"]


def test_a_document_index_is_asked_by_its_embedded_field_and_then_reranked(
    documents_service: PineconeService, settings: Settings
) -> None:
    best = {"_id": "vllm:a.cu#1", "body": "norm of rows, by far the longest text"}
    fill(documents_service, settings, {"_id": "vllm:b.cu#1"}, best)
    assert found(settings) == ("vllm:a.cu#1", "vllm:b.cu#1")
    (asked,) = documents_service.paths("/documents/search")
    assert asked.json["score_by"] == [{"type": "embed", "query": "norm", "field": "body"}]
    (reranked,) = documents_service.paths("/rerank")
    assert reranked.json["rank_fields"] == ["body"]
    assert reranked.json["model"] == "bge-reranker-v2-m3"


def test_of_more_answers_than_were_asked_for_the_first_are_taken(
    service: PineconeService, settings: Settings
) -> None:
    fill(service, settings, {"_id": "vllm:a.cu#1"})
    hits = [
        {"_id": f"vllm:{name}.cu#1", "_score": 1.0, "fields": {"source": "vllm"}} for name in "abc"
    ]
    answer = {"result": {"hits": hits}, "usage": {"read_units": 6}}
    service.faults = [Fault(200, body=json.dumps(answer).encode(), on="/search")]
    backend = PineconeBackend(settings, PATIENT_S)
    assert backend.search("norm", EVERYWHERE, 2) == ("vllm:a.cu#1", "vllm:b.cu#1")


def test_places_that_the_reranker_makes_up_are_left_out(
    documents_service: PineconeService, settings: Settings
) -> None:
    fill(documents_service, settings, {"_id": "vllm:a.cu#1"}, {"_id": "vllm:b.cu#1"})
    data = [{"index": index, "score": 1.0} for index in (-1, 7, 1, 0, 0)]
    answer = {"model": "bge-reranker-v2-m3", "data": data, "usage": {"rerank_units": 1}}
    documents_service.faults = [Fault(200, body=json.dumps(answer).encode(), on="/rerank")]
    first, *others = PineconeBackend(settings, PATIENT_S).search("norm", EVERYWHERE, 2)
    assert others == [{"vllm:a.cu#1": "vllm:b.cu#1", "vllm:b.cu#1": "vllm:a.cu#1"}[first]]


def test_the_index_is_described_once_and_then_remembered(
    service: PineconeService, settings: Settings
) -> None:
    fill(service, settings, {"_id": "vllm:a.cu#1"})
    backend = PineconeBackend(settings, PATIENT_S)
    for _ in range(2):
        assert backend.search("norm", EVERYWHERE, 5) == ("vllm:a.cu#1",)
    assert len(service.paths("/indexes")) == 1


def test_an_index_by_another_text_field_is_asked_by_that_field(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    with pinecone_service(records_index("cuda-kernels-v2", "content")) as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        fill(service, settings, {"_id": "vllm:a.cu#1"})
        assert found(settings) == ("vllm:a.cu#1",)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(("flashinfer",)), {"f"}),
        (Filters(("flashinfer", "vllm"), arch="sm90"), {"f", "hopper"}),
        (Filters(("flashinfer", "vllm"), dtype="fp8"), {"blackwell"}),
        (Filters(("flashinfer", "vllm"), kind="device"), {"hopper"}),
    ],
)
def test_filters_are_applied_by_the_service(
    service: PineconeService, settings: Settings, filters: Filters, expected: set[str]
) -> None:
    fill(
        service,
        settings,
        {"_id": "f", "source": "flashinfer"},
        {"_id": "hopper", "arch": ["sm90", "sm100"], "kind": "device"},
        {"_id": "blackwell", "arch": ["sm100"], "dtype": ["fp8"]},
    )
    assert set(found(settings, filters)) == expected


def test_no_source_to_search_asks_nobody(service: PineconeService, settings: Settings) -> None:
    assert found(settings, Filters(())) == ()
    assert service.asked == []


def test_filters_that_nothing_passes_give_an_empty_answer(
    service: PineconeService, settings: Settings
) -> None:
    fill(service, settings, {"_id": "vllm:a.cu#1"})
    assert found(settings, Filters(("vllm",), kind="struct")) == ()


def test_an_index_without_this_library_says_how_to_upload_it(
    service: PineconeService, settings: Settings
) -> None:
    assert service.index is not None
    service.index.upsert("kopt-another-library", [{"_id": "a", "chunk_text": "norm"}])
    with pytest.raises(BackendUnavailable, match=r"no records of this library.*`kopt docs push`"):
        found(settings)


def test_an_index_that_embeds_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    with pinecone_service(dense_index("cuda-kernels-v2")) as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        with pytest.raises(BackendUnavailable, match=r"embeds no text: .*PINECONE_INDEX_NAME"):
            found(settings)


def test_an_index_that_is_being_made_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    with pinecone_service(records_index("cuda-kernels-v2", ready_after=1)) as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        with pytest.raises(BackendUnavailable, match=r"not ready \(Initializing\)"):
            found(settings)


def test_the_kind_of_a_given_host_is_looked_up(
    documents_service: PineconeService, settings: Settings
) -> None:
    fill(documents_service, settings, {"_id": "vllm:a.cu#1"})
    hosted = replace(settings, pinecone_index_name="?", pinecone_index_host=documents_service.url)
    assert found(hosted) == ("vllm:a.cu#1",)
    assert [one.path for one in documents_service.paths("/indexes")] == ["/indexes"]


@pytest.mark.parametrize("fault", [Fault(403, on="/indexes"), Fault(how="hang", on="/indexes")])
def test_a_host_that_cannot_be_looked_up_is_taken_for_one_of_kopts_own(
    service: PineconeService, settings: Settings, fault: Fault
) -> None:
    fill(service, settings, {"_id": "vllm:a.cu#1"})
    service.faults = [fault]
    assert found(replace(settings, pinecone_index_host=service.url)) == ("vllm:a.cu#1",)


def test_a_path_with_any_letters_comes_back_as_it_was(
    service: PineconeService, settings: Settings
) -> None:
    uid = "vllm:grö ße/100%25.cu#1"
    fill(service, settings, {"_id": remote_id(uid)})
    assert found(settings) == (uid,)


def test_of_a_long_query_only_what_the_models_read_is_sent(
    service: PineconeService, settings: Settings
) -> None:
    fill(service, settings, {"_id": "vllm:a.cu#1"})
    PineconeBackend(settings, PATIENT_S).search("norm " * 2000, EVERYWHERE, 5)
    assert len(service.paths("/search")[0].json["query"]["inputs"]["text"]) == 1000


def test_without_key_or_library_nobody_is_there_to_be_asked(settings: Settings) -> None:
    assert pinecone_backend(settings) is pinecone_backend(replace(settings))
    assert pinecone_backend(settings.without_keys()) is None
    assert pinecone_backend(replace(settings, home=settings.home / "other")) is None
