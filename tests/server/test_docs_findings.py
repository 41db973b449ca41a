"""What `kopt doctor` says about the document search: what is there, and how to get the rest."""

from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.server import docs_findings
from kopt.server.views.doctor_view import Finding
from support.written_index import function, write_library

KEY = "pcsk_made_up_0123456789"


def found(settings: Settings, name: str) -> Finding:
    """Return the finding called `name`; none of them is required."""
    findings = {one.name: one for one in docs_findings.docs_findings(settings)}
    assert not any(one.is_required for one in findings.values())
    return findings[name]


def test_library_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    library = found(Settings(home=tmp_path), "kernel library")
    assert not library.is_present
    assert "kopt docs build" in library.detail


def test_library_is_told_by_its_size_and_sources(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    write_library(settings, [function("flashinfer", "a.cu"), function("vllm", "b.cu")])
    library = found(settings, "kernel library")
    assert library.is_present
    assert library.detail.startswith("2 documents, ")
    assert library.detail.endswith(" MB, of flashinfer 1.0, vllm 1.0")


def test_missing_extra_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "wordllama":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(docs_findings, "version", version)
    extra = found(Settings(home=tmp_path), "docs extra")
    assert not extra.is_present
    assert "no wordllama:" in extra.detail
    assert "pip install 'kopt-mcp[docs]'" in extra.detail


def test_key_of_pinecone_is_said_to_be_there_and_not_shown(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert not found(settings, "Pinecone").is_present
    pinecone = found(replace(settings, pinecone_api_key=KEY), "Pinecone")
    assert pinecone.is_present
    assert KEY not in pinecone.detail
    assert "cuda-kernels-v2" in pinecone.detail
