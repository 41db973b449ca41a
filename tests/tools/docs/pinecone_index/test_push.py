"""Uploads to Pinecone: what is sent, and what an upload does that is begun again."""

import signal
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import BackendUnavailable, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.pinecone_index.asking import PineconeBackend
from kopt.tools.docs.pinecone_index.push import push_library
from kopt.tools.docs.pinecone_index.push_plan import namespace_of, push_estimate
from kopt.tools.docs.pinecone_index.push_records import PushProgress, PushRequest, PushResult
from support.pinecone_service import Fault, PineconeService, pinecone_service
from support.pinecone_store import MOST_RECORDS, Fields
from support.quick_pacing import QuickPacing
from support.written_index import function, write_library

FOREVER = 1000
MANY = 2 * MOST_RECORDS + 8


@pytest.fixture
def many(settings: Settings) -> Settings:
    """Settings with a library of three requests."""
    write_library(settings, [function("vllm", f"csrc/k{n:03}.cu") for n in range(MANY)])
    return settings


def push(settings: Settings, request: PushRequest | None = None) -> PushResult:
    """Upload without waiting for anything."""
    return push_library(
        request or PushRequest(), settings, lambda progress: None, QuickPacing().pacing
    )


def stored(service: PineconeService, settings: Settings) -> dict[str, Fields]:
    """Return the records in the namespace of the library."""
    assert service.index is not None
    return service.index.namespaces[namespace_of(settings) or ""]


def test_every_function_is_sent_with_its_card_and_little_else(
    service: PineconeService, settings: Settings
) -> None:
    result = push(settings)
    assert (result.records, result.sent, result.requests, result.created) == (3, 3, 1, False)
    assert (result.namespace, result.is_visible) == (namespace_of(settings), True)
    assert result.estimated_tokens == push_estimate(PushRequest(), settings).estimated_tokens
    record = stored(service, settings)["flashinfer:csrc/norm.cu#1"]
    text = record.pop("chunk_text")
    assert text.startswith("norm. normalize. row normalization. Normalizes the rows of a matrix.")
    assert "__global__ void norm(float* x)" in text
    assert record == {
        "_id": "flashinfer:csrc/norm.cu#1",
        "source": "flashinfer",
        "kind": "kernel",
        "arch": ["any"],
        "path": "csrc/norm.cu",
    }


def test_what_was_pushed_is_found(service: PineconeService, settings: Settings) -> None:
    push(settings)
    found = PineconeBackend(settings, 30.0).search("topk", Filters(("flashinfer", "vllm")), 3)
    assert set(found) == {
        "flashinfer:csrc/norm.cu#1",
        "flashinfer:csrc/rope.cu#1",
        "vllm:csrc/topk.cu#1",
    }


def test_a_document_index_is_filled_as_one(
    documents_service: PineconeService, settings: Settings
) -> None:
    assert push(settings).sent == 3
    assert "norm" in stored(documents_service, settings)["flashinfer:csrc/norm.cu#1"]["body"]
    (home,) = (settings.docs_cache / "pinecone").glob("*/*.ids")
    home.unlink()
    assert push(settings).sent == 0


def test_progress_rises_to_the_number_of_records(service: PineconeService, many: Settings) -> None:
    told: list[PushProgress] = []
    push_library(PushRequest(), many, told.append, QuickPacing().pacing)
    assert [one.done for one in told if one.step == "upload"] == [0, 96, 192, MANY]
    assert {one.total for one in told} == {MANY}
    assert [told[0].step, told[-1].step] == ["index", "settle"]


def test_a_second_push_sends_nothing(service: PineconeService, many: Settings) -> None:
    assert push(many).sent == MANY
    assert push(many).sent == 0
    assert service.paths("/vectors/list") == []


def test_another_machine_sends_nothing_of_what_is_there(
    service: PineconeService, many: Settings, tmp_path: Path
) -> None:
    push(many)
    other = replace(many, home=tmp_path / "other")
    write_library(other, [function("vllm", f"csrc/k{n:03}.cu") for n in range(MANY)])
    assert push(other).sent == 0
    assert len(service.paths("/vectors/list")) == 2  # pages of 100


def test_a_namespace_that_was_deleted_is_filled_again(
    service: PineconeService, settings: Settings
) -> None:
    push(settings)
    stored(service, settings).clear()
    assert push(settings).sent == 3
    assert len(stored(service, settings)) == 3


def test_a_push_that_broke_off_goes_on_where_it_was(
    service: PineconeService, many: Settings
) -> None:
    service.faults = [Fault(how="skip", on="/upsert"), *[Fault(500, on="/upsert")] * FOREVER]
    with pytest.raises(BackendUnavailable, match=r"500.*96 of 200 records are there"):
        push(many)
    service.faults = []
    assert push(many).sent == MANY - 96
    assert len(stored(service, many)) == MANY


@pytest.fixture
def hears_ctrl_c() -> Generator[None]:
    """A process that was started in the background does not by itself."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_push_that_then_goes_on(service: PineconeService, many: Settings) -> None:
    def interrupt(progress: PushProgress) -> None:
        if progress.done == 96:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        push_library(PushRequest(), many, interrupt, QuickPacing().pacing)
    assert 96 <= len(stored(service, many)) < MANY
    result = push(many)
    assert result.sent <= MANY - 96
    assert len(stored(service, many)) == MANY


def test_a_line_that_was_cut_off_in_writing_is_no_id(
    service: PineconeService, settings: Settings
) -> None:
    push(settings)
    (noted,) = (settings.docs_cache / "pinecone").glob("*/*.ids")
    noted.write_bytes(noted.read_bytes()[:-3])
    assert push(settings).sent == 0
    assert noted.read_text().count("\n") == 3


def test_without_key_library_or_index_it_says_what_to_do(
    service: PineconeService, settings: Settings
) -> None:
    with pytest.raises(SetupError, match="set PINECONE_API_KEY"):
        push(settings.without_keys())
    with pytest.raises(SetupError, match="kopt docs build"):
        push(replace(settings, home=settings.home / "other"))
    with pytest.raises(BackendUnavailable, match="kopt docs push --create"):
        push(replace(settings, pinecone_index_name="missing"))


def test_a_missing_index_is_made_if_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    quick = QuickPacing()
    with pinecone_service() as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        request = PushRequest(create=True)
        result = push_library(request, settings, lambda progress: None, quick.pacing)
        assert (result.created, result.sent) == (True, 3)
        (created,) = service.paths("create-for-model")
        assert created.json["name"] == "cuda-kernels-v2"
        assert (created.json["cloud"], created.json["region"]) == ("aws", "us-east-1")
        assert created.json["embed"]["model"] == "multilingual-e5-large"
        assert created.json["embed"]["field_map"] == {"text": "chunk_text"}
    assert quick.slept != []  # until it was ready


def test_an_index_that_another_process_makes_meanwhile_is_used(
    service: PineconeService, settings: Settings
) -> None:
    service.faults = [Fault(404, on="/indexes/cuda-kernels-v2")]
    result = push(settings, PushRequest(create=True))
    assert (result.created, result.sent) == (False, 3)
    assert len(service.paths("create-for-model")) == 1


def test_only_the_users_word_sends_his_folders_and_none_sends_nvidias_headers(
    service: PineconeService, settings: Settings
) -> None:
    write_library(
        settings,
        [
            function("vllm", "a.cu"),
            function("mine", "a.cu"),
            function("cuda", "a.cu", license_id="LicenseRef-NVIDIA-Proprietary"),
        ],
    )
    assert push(settings).sources == {"vllm": 1}
    assert push(settings, PushRequest(sources=("mine",))).sources == {"mine": 1}
    assert set(stored(service, settings)) == {"vllm:a.cu#1", "mine:a.cu#1"}
    with pytest.raises(ToolError, match="licence of cuda forbids"):
        push(settings, PushRequest(sources=("cuda",)))
    with pytest.raises(ToolError, match="no source vlm; it has: cuda, mine, vllm"):
        push(settings, PushRequest(sources=("vlm",)))


def test_a_file_under_a_licence_of_its_own_is_sent_only_if_that_one_is_public(
    service: PineconeService, settings: Settings
) -> None:
    write_library(
        settings,
        [
            function("flashinfer", "apache.cu"),
            function("flashinfer", "mit.cu", license_id="MIT AND Apache-2.0"),
            function("flashinfer", "nvidia.cu", license_id="LicenseRef-NvidiaProprietary"),
            function("flashinfer", "part.cu", license_id="MIT AND LicenseRef-Acme"),
            function("flashinfer", "unknown.cu", license_id=None),
            function("mine", "unknown.cu", license_id=None),
            function("mine", "own.cu", license_id="LicenseRef-Mine"),
        ],
    )
    estimate = push_estimate(PushRequest(), settings)
    assert estimate.sources == {"flashinfer": 2}
    assert estimate.kept_back.keys() == {"flashinfer", "mine"}
    assert estimate.kept_back["flashinfer"].startswith("3 documents")
    for sources in ((), ("flashinfer",)):
        push(settings, PushRequest(sources=sources))
        assert set(stored(service, settings)) == {"flashinfer:apache.cu#1", "flashinfer:mit.cu#1"}
    assert push(settings, PushRequest(sources=("mine",))).sources == {"mine": 2}
