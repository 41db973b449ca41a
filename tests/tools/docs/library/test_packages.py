"""Packages that are installed here, read and never imported."""

import sys
from pathlib import Path

import pytest

from kopt.tools.docs.library.archives import ALL_MEMBERS
from kopt.tools.docs.library.packages import installed_members, installed_package, installed_version
from kopt.tools.docs.sources import SourceUnavailable
from support.archives import KERNEL
from support.installed_package import install_package


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages can be installed in."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return folder


def test_sources_are_found_without_an_import(site: Path) -> None:
    files = {
        "tiny_kernels/__init__.py": b"raise RuntimeError('imported')\n",
        "tiny_kernels/a.cu": KERNEL,
        "../bin/b.cu": KERNEL,
    }
    install_package(site, "tiny-kernels", "3.1", files)
    members = dict(installed_members("tiny-kernels", ALL_MEMBERS))
    assert installed_version("tiny-kernels") == "3.1"
    assert members["tiny_kernels/a.cu"] == KERNEL
    assert not any(".." in path for path in members)
    assert "tiny_kernels" not in sys.modules


def test_file_that_is_gone_is_left_out(site: Path) -> None:
    install_package(site, "tiny-kernels", "3.1", {"a.cu": KERNEL, "b.cu": KERNEL})
    (site / "a.cu").unlink()
    assert dict(installed_members("tiny-kernels", ALL_MEMBERS)) == {"b.cu": KERNEL}


def test_paths_are_those_of_the_pinned_wheel(site: Path) -> None:
    install_package(site, "flashinfer-python", "9.9", {"flashinfer/data/csrc/norm.cu": KERNEL})
    source, members = installed_package("flashinfer")
    assert (source.key, source.version) == ("flashinfer", "9.9")
    assert dict(members) == {"csrc/norm.cu": KERNEL}


def test_absent_package_is_named(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(site)])
    with pytest.raises(SourceUnavailable, match="liger-kernel is not installed here"):
        installed_package("liger")


def test_package_without_its_sources_points_to_its_folder(site: Path) -> None:
    install_package(site, "sglang", "0.9", {"__editable__sglang.pth": b"/home/me/sglang"})
    with pytest.raises(SourceUnavailable, match="add its folder"):
        installed_package("sglang")


def test_apex_is_never_taken_from_a_package_of_that_name(site: Path) -> None:
    install_package(site, "apex", "0.9", {"apex/a.cu": KERNEL})
    with pytest.raises(SourceUnavailable, match="no package to install"):
        installed_package("apex")
