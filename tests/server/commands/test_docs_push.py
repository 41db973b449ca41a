"""`kopt docs push`: the cost first, an answer to it, then the upload, which can be cut off."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.server.commands import docs_push
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.pinecone_service import KEY, Fault, PineconeService, pinecone_service
from support.pinecone_store import records_index
from support.written_index import function, write_library


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kopt: Kopt) -> Settings:
    """Return a home with a library of two functions, and no key."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    for name in ("PINECONE_API_KEY", "PINECONE_INDEX_NAME", "PINECONE_INDEX_HOST"):
        monkeypatch.delenv(name, raising=False)
    settings = Settings(home=tmp_path)
    write_library(
        settings, [function("flashinfer", "csrc/norm.cu"), function("vllm", "csrc/topk.cu")]
    )
    return settings


@pytest.fixture
def service(library: Settings, monkeypatch: pytest.MonkeyPatch) -> Generator[PineconeService]:
    """Yield a service with an empty index, which has given this user a key."""
    with pinecone_service(records_index("cuda-kernels-v2")) as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        yield service


@pytest.mark.usefixtures("library")
def test_dry_run_says_what_it_costs_and_needs_no_key(kopt: Kopt) -> None:
    ending = kopt("docs", "push", "--dry-run")
    assert ending.code == ExitCode.PASSED
    assert "2 records: flashinfer 1, vllm 1" in ending.stdout
    assert "fits the 5 million a month" in ending.stdout
    document = kopt("docs", "push", "--dry-run", "--json").document
    assert (document["schema"], document["records"]) == ("kopt.docs-push-estimate/1", 2)
    assert ending.stderr == "counting what is to be sent\n"


@pytest.mark.usefixtures("library")
def test_missing_key_is_named_before_anything_is_asked(kopt: Kopt) -> None:
    ending = kopt("docs", "push", "--yes")
    assert ending.code == ExitCode.MACHINE
    assert "set PINECONE_API_KEY" in ending.stderr


def test_missing_library_says_how_to_build_it(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    ending = kopt("docs", "push", "--dry-run")
    assert ending.code == ExitCode.MACHINE
    assert "kopt docs build" in ending.stderr


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_nobody_to_ask_uploads_nothing(
    kopt: Kopt, service: PineconeService, flags: tuple[str, ...]
) -> None:
    ending = kopt("docs", "push", *flags)
    assert ending.code == ExitCode.USAGE
    assert "Add --yes" in ending.stdout + ending.stderr
    assert service.asked == []


def test_upload_is_complete_and_the_key_is_shown_nowhere(
    kopt: Kopt, service: PineconeService
) -> None:
    ending = kopt("docs", "push", "--yes")
    assert ending.code == ExitCode.PASSED
    assert "has 2 records" in ending.stdout
    assert "uploading, 2 records, 100 %" in ending.stderr
    assert KEY not in ending.stdout + ending.stderr
    again = kopt("docs", "push", "--yes", "--json")
    assert (again.document["sent"], again.stderr) == (0, "")


def test_index_that_is_missing_is_made_only_if_asked_for(
    kopt: Kopt, service: PineconeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINECONE_INDEX_NAME", "mine")
    refused = kopt("docs", "push", "--yes")
    assert refused.code == ExitCode.MACHINE
    assert "--create" in refused.stderr
    assert not service.paths("create-for-model")


def test_refused_key_is_one_line_without_it(
    kopt: Kopt, service: PineconeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINECONE_API_KEY", "pcsk_another_one")
    ending = kopt("docs", "push", "--yes")
    assert ending.code == ExitCode.MACHINE
    assert "PINECONE_API_KEY" in ending.stderr
    assert "pcsk_another_one" not in ending.stderr


def test_upload_that_the_service_ends_goes_on_with_the_same_command(
    kopt: Kopt, service: PineconeService
) -> None:
    service.faults.append(Fault(status=403, on="/upsert"))
    ending = kopt("docs", "push", "--yes")
    assert ending.code == ExitCode.MACHINE
    assert kopt("docs", "push", "--yes", "--json").document["sent"] == 2


@pytest.mark.usefixtures("service")
def test_ctrl_c_says_that_the_same_command_goes_on(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(docs_push, "push_library", interrupted)
    ending = kopt("docs", "push", "--yes")
    assert ending.code == ExitCode.INTERRUPTED
    assert "the same command goes on from there" in ending.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--source", "walrus"), "has no source walrus; it has: flashinfer, vllm"),
        (("--most-tokens", "5"), "must be 60 to"),
        (("--most-tokens", "many"), "not a valid integer"),
    ],
)
@pytest.mark.usefixtures("library")
def test_careless_call_says_what_is_allowed(kopt: Kopt, words: tuple[str, ...], said: str) -> None:
    ending = kopt("docs", "push", "--dry-run", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
