"""What `kopt doctor` says of documents and models: what is there, and how to get the rest."""

from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from kopt.config.sealed_folder import is_sealed
from kopt.config.settings import ClaudeAccess, Settings
from kopt.server.doctor import findings
from kopt.server.doctor.findings import (
    DoctorFinding,
    docs_findings,
    machine_findings,
    model_findings,
)
from kopt.tools.cuda import include_tree
from kopt.tools.cuda.toolchain import FoundToolchain, find_toolchain
from support.written_index import function, write_library

KEY = "pcsk_made_up_0123456789"
CLAUDE_KEY = "sk-made-up-key-0123456789"


def found(settings: Settings, name: str) -> DoctorFinding:
    """Return the finding called `name`; none of them is required."""
    told = {one.name: one for one in (*docs_findings(settings), *model_findings(settings))}
    assert not any(one.is_required for one in told.values())
    return told[name]


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

    monkeypatch.setattr(findings, "version", version)
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


def test_without_a_key_is_said_what_a_run_does_then(tmp_path: Path) -> None:
    claude = found(Settings(home=tmp_path), "Claude")
    assert not claude.is_present
    assert "ANTHROPIC_API_KEY is not set" in claude.detail and "tune" in claude.detail


def test_key_or_token_is_said_to_be_there_and_not_shown(tmp_path: Path) -> None:
    for access in (ClaudeAccess(api_key=CLAUDE_KEY), ClaudeAccess(auth_token=CLAUDE_KEY)):
        claude = found(Settings(home=tmp_path, claude=access), "Claude")
        variable = "ANTHROPIC_API_KEY" if access.api_key else "ANTHROPIC_AUTH_TOKEN"
        assert claude.is_present
        assert claude.detail.startswith(variable) and CLAUDE_KEY not in claude.detail


def test_prices_are_told_with_their_date_and_where_to_write_others(tmp_path: Path) -> None:
    prices = found(Settings(home=tmp_path), "prices of models")
    assert prices.is_present
    assert "seen 2026-11;" in prices.detail
    assert str(tmp_path / "prices.yaml") in prices.detail


def test_own_prices_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("models: 1")
    prices = found(Settings(home=tmp_path), "prices of models")
    assert not prices.is_present
    assert "prices.yaml: models" in prices.detail


def test_a_damaged_cache_that_was_made_again_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "include" / "abc"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{")
    assert not is_sealed(folder)
    (state,) = [one for one in machine_findings(Settings(tmp_path)) if one.name == "state folder"]
    assert state.is_present
    assert str(folder) in state.detail


def test_missing_headers_are_named_with_the_command_that_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cu13"
    for header in ("cuda_bf16.h", "crt/host_config.h"):
        file = root / "include" / header
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.setattr(include_tree, "pip_toolkit_root", lambda: root)
    headers = _machine(tmp_path, "CUDA headers")
    assert (headers.is_present, headers.is_required) == (False, True)
    assert "(nvidia-cuda-cccl), and without them the simulator checks nothing" in headers.detail
    assert "pip install --force-reinstall --no-deps 'nvidia-cuda-cccl==13" in headers.detail

    (root / "include/cccl/nv").mkdir(parents=True)
    (root / "include/cccl/nv/target").touch()
    assert _machine(tmp_path, "CUDA headers").detail.startswith(f"{root}/include: ")


def test_compiler_without_nvdisasm_is_told_what_it_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = replace(find_toolchain(Settings(home=tmp_path)), nvdisasm=None)

    def found(_: Settings) -> FoundToolchain:
        return blind

    monkeypatch.setattr(findings, "find_toolchain", found)
    compiler = _machine(tmp_path, "CUDA compiler")
    assert (compiler.is_present, compiler.is_required) == (False, True)
    assert "no time can be estimated" in compiler.detail
    assert "kopt-mcp[toolkit]" in compiler.detail


def _machine(home: Path, name: str) -> DoctorFinding:
    return next(one for one in machine_findings(Settings(home=home)) if one.name == name)
