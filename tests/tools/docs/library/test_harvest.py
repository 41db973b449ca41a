"""From a selection to sources with files, or with the reason why not."""

import sys
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, SkippedSource
from kopt.tools.docs.library import harvest as harvesting
from kopt.tools.docs.library import packages
from kopt.tools.docs.library.harvest import (
    FileSelection,
    FolderChoice,
    Harvested,
    harvest,
)
from kopt.tools.docs.library.pins import Pins
from support.archives import KERNEL, TRITON_KERNEL, pin_of, sdist, wheel
from support.git_repository import commit_files
from support.installed_package import install_package
from support.package_server import PackageServer

PINNED = FileSelection(sources=("vllm", "liger"))
WHEEL = wheel({"pkg/b.py": TRITON_KERNEL, "pkg/a.cu": KERNEL, "pkg/host.py": b"import os\n"})
SDIST = sdist({"pkg/c.cu": KERNEL})


def _all(selection: FileSelection, settings: Settings) -> list[Harvested | SkippedSource]:
    return list(harvest(selection, settings, lambda progress: None))


def _one(selection: FileSelection, settings: Settings) -> Harvested:
    (found,) = _all(selection, settings)
    assert isinstance(found, Harvested), found
    return found


def _skipped(selection: FileSelection, settings: Settings) -> SkippedSource:
    (found,) = _all(selection, settings)
    assert isinstance(found, SkippedSource)
    return found


@pytest.fixture
def tiny_pins(server: PackageServer, monkeypatch: pytest.MonkeyPatch) -> Pins:
    """Pin two tiny files in place of the real ones, and serve them."""
    wheel_pin, sdist_pin = pin_of(WHEEL), pin_of(SDIST, "tiny-1.0.tar.gz")
    server.files.update({wheel_pin.filename: WHEEL, sdist_pin.filename: SDIST})
    tiny = Pins(
        libraries={},
        packages={"vllm": sdist_pin, "liger": wheel_pin},
        installed={},
        repositories={},
    )
    for module in (harvesting, packages):
        monkeypatch.setattr(module, "pins", lambda: tiny)
    return tiny


@pytest.mark.usefixtures("tiny_pins")
def test_pinned_sources_come_filtered_and_in_order(settings: Settings) -> None:
    vllm, liger = _all(PINNED, settings)
    assert isinstance(vllm, Harvested)
    assert isinstance(liger, Harvested)
    assert [file.path for file in vllm.files] == ["pkg/c.cu"]
    assert [file.path for file in liger.files] == ["pkg/a.cu", "pkg/b.py"]
    assert (liger.source.version, liger.source.license) == ("1.0", "BSD-2-Clause")
    assert liger.files[0].text == KERNEL.decode()


@pytest.mark.usefixtures("tiny_pins")
def test_one_failing_source_does_not_stop_the_others(
    server: PackageServer, settings: Settings
) -> None:
    server.files["tiny-1.0.tar.gz"] = b"something else"
    vllm, liger = _all(PINNED, settings)
    assert isinstance(vllm, SkippedSource)
    assert isinstance(liger, Harvested)


@pytest.mark.usefixtures("tiny_pins")
def test_progress_names_the_source_and_reaches_its_size(settings: Settings) -> None:
    seen: list[BuildProgress] = []
    list(harvest(FileSelection(sources=("liger",)), settings, seen.append))
    assert seen[0] == BuildProgress("download", "liger", 0, None)
    assert seen[-1] == BuildProgress("download", "liger", len(WHEEL), len(WHEEL))


@pytest.mark.usefixtures("tiny_pins")
def test_nothing_is_asked_of_the_network_before_a_source_is_wanted(
    server: PackageServer, settings: Settings
) -> None:
    harvest(PINNED, settings, lambda progress: None)
    assert server.asked == []


def test_nothing_is_obtained_where_nothing_is_selected(settings: Settings) -> None:
    assert _all(FileSelection(), settings) == []
    assert _all(FileSelection(installed=True), settings) == []


def test_installed_sources_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path, "torch", "9.9", {"torch/include/ATen/cuda/Atomic.cuh": KERNEL})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    offline = Settings(home=tmp_path / "home", package_index="http://127.0.0.1:1/simple")
    found = _all(FileSelection(("torch", "vllm", "triton"), installed=True), offline)
    torch = next(one for one in found if isinstance(one, Harvested))
    assert (torch.source.key, torch.source.version) == ("torch", "9.9")
    assert [file.path for file in torch.files] == ["ATen/cuda/Atomic.cuh"]
    assert {one.source for one in found if isinstance(one, SkippedSource)} == {"vllm", "triton"}


def test_installed_torch_spares_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, "torch", "9.9", {"torch/include/ATen/cuda/Atomic.cuh": KERNEL})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    offline = Settings(home=tmp_path / "home", package_index="http://127.0.0.1:1/simple")
    assert _one(FileSelection(sources=("torch",)), offline).source.version == "9.9"


def test_torch_that_is_not_installed_is_asked_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    offline = Settings(home=tmp_path / "home", package_index="http://127.0.0.1:1/simple")
    assert "cannot reach" in _skipped(FileSelection(sources=("torch",)), offline).reason


def test_own_folder_comes_with_its_name_and_weight(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.cu").write_bytes(KERNEL)
    offline = Settings(home=tmp_path / "home", package_index="http://127.0.0.1:1/simple")
    selection = FileSelection(folders=(FolderChoice("mine", tmp_path / "own", 0.7),))
    mine = _one(selection, offline)
    assert (mine.source.key, mine.source.quality, mine.source.license) == ("mine", 0.7, None)
    assert [file.path for file in mine.files] == ["a.cu"]


def test_repository_comes_with_its_commit(
    tmp_path: Path, tiny_pins: Pins, settings: Settings
) -> None:
    commit = commit_files(tmp_path / "Fast Kernels", {"a.cu": KERNEL})
    selection = FileSelection(sources=("liger",), git=(str(tmp_path / "Fast Kernels"),))
    found = _all(selection, settings)[-1]
    assert isinstance(found, Harvested)
    assert found.source.version == commit[:12]
    assert found.source.license is None


def test_folder_without_kernels_says_so(
    tmp_path: Path, tiny_pins: Pins, settings: Settings
) -> None:
    (tmp_path / "own").mkdir()
    choice = FolderChoice("mine", tmp_path / "own")
    found = _all(FileSelection(sources=("liger",), folders=(choice,)), settings)[-1]
    assert found == SkippedSource(source="mine", reason="has no files with device code")


def test_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"")
    with pytest.raises(SetupError, match="KOPT_HOME"):
        _all(FileSelection(sources=("liger",)), Settings(home=tmp_path / "home"))


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (FileSelection(sources=("flashinfr",)), "'flashinfr'; there are flashinfer, cutlass"),
        (FileSelection(git=("-x",)), "no repository"),
        (FileSelection(folders=(FolderChoice("vllm", Path()),)), "is a source already"),
        (FileSelection(folders=(FolderChoice("notes", Path()),)), "is a source already"),
        (FileSelection(folders=(FolderChoice("My Code", Path()),)), "cannot name a source"),
        (FileSelection(folders=(FolderChoice("mine", Path(), 1.5),)), "weight"),
        (FileSelection(folders=(FolderChoice("mine", Path(), float("nan")),)), "weight"),
        (
            FileSelection(folders=(FolderChoice("a", Path()), FolderChoice("a", Path()))),
            "called 'a'",
        ),
    ],
)
def test_impossible_selection_is_refused_before_anything_is_obtained(
    tmp_path: Path, selection: FileSelection, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        harvest(selection, Settings(home=tmp_path / "home"), lambda progress: None)
    assert not (tmp_path / "home").exists()
