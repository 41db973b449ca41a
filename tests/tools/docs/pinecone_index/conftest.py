"""A Pinecone with an index of each kind, and a home with a small library."""

from collections.abc import Generator
from pathlib import Path

import certifi
import pytest

from kopt.config.settings import Settings
from support.built_docs import copy_docs
from support.pinecone_service import KEY, PineconeService, pinecone_service
from support.pinecone_store import documents_index, records_index
from support.written_index import function, write_library


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one root certificate: each client reads all of them, which takes 30 ms."""
    end = "-----END CERTIFICATE-----\n"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(certifi.contents().partition(end)[0] + end, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def quick_clients(monkeypatch: pytest.MonkeyPatch, one_certificate: Path) -> None:
    """Clients that are made in no time."""
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))


@pytest.fixture
def settings(tmp_path: Path, built_docs: Path) -> Settings:
    """Settings with a key and a library of three functions."""
    settings = Settings(home=copy_docs(built_docs, tmp_path / "home"), pinecone_api_key=KEY)
    write_library(
        settings,
        [
            function("flashinfer", "csrc/norm.cu"),
            function("flashinfer", "csrc/rope.cu"),
            function("vllm", "csrc/topk.cu"),
        ],
    )
    return settings


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Generator[PineconeService]:
    """A service with an empty index of the records API, which the SDK asks from now on."""
    with pinecone_service(records_index("cuda-kernels-v2")) as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        yield service


@pytest.fixture
def documents_service(monkeypatch: pytest.MonkeyPatch) -> Generator[PineconeService]:
    """A service with an empty document index, which the SDK asks from now on."""
    with pinecone_service(documents_index("cuda-kernels-v2")) as service:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", service.url)
        yield service
