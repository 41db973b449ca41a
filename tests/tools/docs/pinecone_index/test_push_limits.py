"""Uploads within the limits of the service: sizes, waiting, what it counts, what is deleted."""

import sqlite3
from contextlib import closing

import pytest

from kopt.config.errors import BackendUnavailable, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.index_meta import library_index_path
from kopt.tools.docs.pinecone_index import push_plan
from kopt.tools.docs.pinecone_index.push import push_library
from kopt.tools.docs.pinecone_index.push_plan import namespace_of, push_estimate
from kopt.tools.docs.pinecone_index.push_records import (
    PushProgress,
    PushRequest,
    PushResult,
    batches,
    remote_record,
)
from support.pinecone_service import Fault, PineconeService
from support.pinecone_store import MOST_BYTES, MOST_RECORDS
from support.quick_pacing import QuickPacing
from support.written_index import function, write_library

FOREVER = 1000
LONG = "some words of a body " * 200
"""About 1,400 tokens."""


def push(settings: Settings, quick: QuickPacing | None = None) -> PushResult:
    """Upload without waiting for anything."""
    pacing = (quick or QuickPacing()).pacing
    return push_library(PushRequest(), settings, lambda progress: None, pacing)


def test_no_batch_is_larger_than_a_request_may_be() -> None:
    chunks = [function("vllm", f"{number:04}.cu", body=LONG) for number in range(300)]
    records = [remote_record(chunk, 40_000) for chunk in chunks]
    assert [len(batch) for batch in batches(records, "chunk_text", MOST_RECORDS)] == [96] * 3 + [12]
    huge = [remote_record(function("vllm", f"{n}.cu", body=LONG * 100), 200_000) for n in range(9)]
    sizes = [[len(record.text) for record in batch] for batch in batches(huge, "chunk_text", 96)]
    assert len(sizes) > 1
    assert all(sum(size) < MOST_BYTES for size in sizes)
    assert sum(len(size) for size in sizes) == 9


def test_texts_are_cut_to_what_the_model_reads() -> None:
    record = remote_record(function("vllm", "ä.cu", body="ä" * 5000), 480)
    assert len(record.text.encode()) in (1439, 1440)
    assert record.tokens == 480
    assert record.text.endswith("ä")
    assert record.id == "vllm:%C3%A4.cu#1"


def test_it_waits_as_long_as_the_service_asks(service: PineconeService, settings: Settings) -> None:
    quick, told = QuickPacing(), list[PushProgress]()
    service.faults = [Fault(429, {"retry-after": "7"}, on="/upsert"), Fault(503, on="/upsert")]
    result = push_library(PushRequest(), settings, told.append, quick.pacing)
    assert quick.slept == [7.0, 2.0]
    notes = [one.note for one in told if one.step == "wait"]
    assert notes == ["Pinecone answers 429: again in 7 s", "Pinecone answers 503: again in 2 s"]
    assert (result.sent, result.requests) == (3, 3)


def test_it_does_not_wait_for_ever(service: PineconeService, settings: Settings) -> None:
    quick = QuickPacing()
    service.faults = [Fault(429, {"retry-after": "50"}, on="/upsert")] * FOREVER
    with pytest.raises(BackendUnavailable, match=r"429.*0 of 3 records are there"):
        push(settings, quick)
    assert sum(quick.slept) == 300.0


def test_what_is_used_up_for_the_month_is_not_waited_for(
    service: PineconeService, settings: Settings
) -> None:
    quick = QuickPacing()
    said = b'{"error": {"message": "max embedding tokens per month reached (5000000)"}}'
    service.faults = [Fault(429, body=said, on="/upsert")]
    with pytest.raises(BackendUnavailable, match=r"429.*per month reached"):
        push(settings, quick)
    assert quick.slept == []


def test_a_reply_that_is_lost_sends_the_batch_again(
    service: PineconeService, settings: Settings
) -> None:
    service.faults = [Fault(how="lose", on="/upsert")]
    result = push(settings)
    assert (result.sent, result.requests, result.is_visible) == (3, 2, True)


def test_a_request_that_is_too_large_is_halved(
    service: PineconeService, settings: Settings
) -> None:
    service.faults = [Fault(413, on="/upsert")]
    assert (push(settings).sent, push(settings).sent) == (3, 0)
    assert [len(one.lines) for one in service.paths("/upsert")] == [3, 1, 2]


def test_a_refused_record_ends_the_push_with_what_the_service_says(
    service: PineconeService, settings: Settings
) -> None:
    service.faults = [Fault(400, body=b'{"message": "bad metadata"}', on="/upsert")]
    with pytest.raises(BackendUnavailable, match=r"400 \(it says: bad metadata\)"):
        push(settings)


def test_records_that_are_counted_late_are_waited_for(
    service: PineconeService, settings: Settings
) -> None:
    quick = QuickPacing()
    service.stats_lag = 4
    assert push(settings, quick).is_visible
    assert quick.slept == [2.0] * 3


def test_earlier_libraries_of_this_machine_go_once_the_new_one_is_counted(
    service: PineconeService, settings: Settings
) -> None:
    assert service.index is not None
    others = {"kopt-of-a-colleague", "mine"}
    for name in others:
        service.index.upsert(name, [{"_id": "a", "chunk_text": "norm"}])
    first = push(settings).namespace
    write_library(settings, [function("vllm", "csrc/new.cu")])
    service.stats_lag = FOREVER
    uncounted = push(settings)
    assert (uncounted.is_visible, uncounted.deleted_namespaces) == (False, ())
    assert service.index.namespaces.keys() == others | {first, uncounted.namespace}
    service.stats_lag = 0
    assert [push(settings).deleted_namespaces for _ in range(2)] == [(first,), ()]
    assert service.index.namespaces.keys() == others | {uncounted.namespace}


def test_the_namespace_follows_from_what_is_public_alone(settings: Settings) -> None:
    first = namespace_of(settings)
    write_library(settings, [function("vllm", "a.cu")])
    second = namespace_of(settings)
    closed = function("vllm", "b.cu", license_id="LicenseRef-Acme")
    write_library(settings, [function("vllm", "a.cu"), function("mine", "b.cu"), closed])
    assert namespace_of(settings) == second
    write_library(settings, [function("vllm", "a.cu"), function("vllm", "b.cu")])
    assert namespace_of(settings) not in (first, second)
    assert first is not None and second is not None and first != second
    assert first.startswith("kopt-")


def test_an_estimate_needs_neither_key_nor_service(settings: Settings) -> None:
    write_library(
        settings,
        [
            *[function("vllm", f"{number}.cu", body=LONG) for number in range(100)],
            function("mine", "a.cu"),
            function("cuda", "fp8.h", license_id="LicenseRef-NVIDIA-Proprietary"),
            function("vllm", f"{'long/' * 110}a.cu"),
        ],
    )
    estimate = push_estimate(PushRequest(), settings.without_keys())
    assert (estimate.index, estimate.namespace) == ("cuda-kernels-v2", namespace_of(settings))
    assert (estimate.cloud, estimate.region) == ("aws", "us-east-1")
    assert (estimate.sources, estimate.records, estimate.requests) == ({"vllm": 100}, 100, 2)
    assert estimate.kept_back.keys() == {"cuda", "mine"}
    assert estimate.left_out == 1
    assert estimate.estimated_tokens == 100 * 480
    assert (estimate.fits_starter_plan, estimate.most_tokens_that_fit) == (True, None)


def test_an_estimate_says_how_much_of_each_text_would_fit_the_starter_plan(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_library(settings, [function("vllm", f"{number}.cu", body=LONG) for number in range(10)])
    monkeypatch.setattr(push_plan, "STARTER_PLAN_TOKENS", 2009)
    estimate = push_estimate(PushRequest(), settings)
    assert (estimate.fits_starter_plan, estimate.most_tokens_that_fit) == (False, 200)
    fitting = push_estimate(PushRequest(most_tokens=200), settings)
    assert (fitting.fits_starter_plan, fitting.estimated_tokens) == (True, 2000)


def test_an_estimate_of_nothing_or_by_odd_numbers_is_refused(settings: Settings) -> None:
    with pytest.raises(ToolError, match="60 to 480"):
        push_estimate(PushRequest(most_tokens=10), settings)
    write_library(settings, [function("mine", "a.cu")])
    with pytest.raises(SetupError, match="mine"):
        push_estimate(PushRequest(), settings)


def test_a_library_of_another_format_is_to_be_built_again(settings: Settings) -> None:
    with closing(sqlite3.connect(library_index_path(settings))) as connection:
        connection.execute("drop table body")
        connection.commit()
    with pytest.raises(SetupError, match="kopt docs build"):
        push_estimate(PushRequest(), settings)
