"""The profiler and the sanitizer are found where they are whole, in a fixed order."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.profiling import nvidia_tools
from kopt.tools.profiling.nvidia_tools import find_ncu, find_sanitizer


@pytest.fixture
def bare(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings on a machine that has none of the tools."""

    def no_pip() -> None:
        return None

    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(nvidia_tools, "_SYSTEM_ROOT", tmp_path / "no-toolkit")
    monkeypatch.setattr(nvidia_tools, "_NSIGHT_FOLDERS", tmp_path / "nsight-compute")
    monkeypatch.setattr(nvidia_tools, "pip_toolkit_root", no_pip)
    return replace(settings, cuda_home=tmp_path / "cuda", ncu=None)


def program(path: Path, version: str) -> Path:
    """Write a program that knows its version and one option."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "#!/bin/sh\n"
        f'test "$1" = --version && echo "Version {version} (build 1) (public-release)"\n'
        'test "$1" = --help && echo "  --tool arg  Set the tool"\n'
        "exit 0\n"
    )
    path.chmod(0o755)
    return path


def whole_sanitizer(root: Path, version: str) -> Path:
    """Write a compute-sanitizer with what it starts programs with."""
    path = program(root / "compute-sanitizer" / "compute-sanitizer", version)
    program(path.with_name("TreeLauncherSubreaper"), version)
    return path


def test_machine_without_tools_has_none(bare: Settings) -> None:
    assert (find_ncu(bare), find_sanitizer(bare)) == (None, None)


def test_setting_is_taken_and_nothing_else(bare: Settings, tmp_path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "ncu", "2025.3.1.0")
    own = program(tmp_path / "own" / "ncu", "2026.1.0.0")
    found = find_ncu(replace(bare, ncu=own))
    assert found is not None
    assert (found.path, found.name) == (own, "Nsight Compute 2026.1.0")
    assert find_ncu(replace(bare, ncu=tmp_path / "absent")) is None


def test_newest_installed_profiler_is_found(bare: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "nsight-compute"
    program(folder / "2025.3.1" / "ncu", "2025.3.1.0")
    newest = program(folder / "2025.10.0" / "ncu", "2025.10.0.0")
    found = find_ncu(bare)
    assert found is not None
    assert found.path == newest


def test_sanitizer_that_cannot_start_programs_is_passed_over(
    bare: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "cuda" / "bin" / "compute-sanitizer", "2026.1.1.0")
    assert find_sanitizer(bare) is None
    whole = whole_sanitizer(tmp_path / "pip", "2026.4.0.0")

    def pip_root() -> Path:
        return tmp_path / "pip"

    monkeypatch.setattr(nvidia_tools, "pip_toolkit_root", pip_root)
    found = find_sanitizer(bare)
    assert found is not None
    assert found.path == whole
    assert found.options == {"tool"}


def test_cuda_home_comes_first(bare: Settings, tmp_path: Path) -> None:
    own = whole_sanitizer(tmp_path / "cuda", "2025.3.1.0")
    whole_sanitizer(tmp_path / "no-toolkit", "2026.4.0.0")
    found = find_sanitizer(bare)
    assert found is not None
    assert found.path == own


def test_program_that_does_not_run_is_not_found(bare: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "cuda" / "bin" / "ncu"
    broken.parent.mkdir(parents=True)
    broken.write_text("no program")
    assert find_ncu(bare) is None
