"""The folders that compilers include from."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.cuda import include_tree
from kopt.tools.cuda.include_tree import (
    cuda_include_folders,
    digest_of,
    include_root,
    kopt_headers,
)


def test_the_include_root_holds_every_kopt_header(tmp_path: Path) -> None:
    folder = include_root(Settings(home=tmp_path)) / "kopt"
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == dict(kopt_headers())
    assert "nvfp4_utils.cuh" in found


def test_the_include_root_is_made_once(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    first = include_root(settings)
    inode = first.stat().st_ino
    assert include_root(settings).stat().st_ino == inode
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_a_copied_header_that_was_cut_is_copied_again(tmp_path: Path) -> None:
    folder = include_root(Settings(home=tmp_path)) / "kopt"
    os.truncate(folder / "bulk_copy.cuh", 600)
    again = include_root(Settings(home=tmp_path)) / "kopt"
    assert (again / "bulk_copy.cuh").read_bytes() == kopt_headers()["bulk_copy.cuh"]


def test_other_content_gives_another_digest() -> None:
    assert digest_of({"a.cuh": b"1"}) != digest_of({"a.cuh": b"2"})
    assert digest_of({"a.cuh": b"1"}) != digest_of({"b.cuh": b"1"})


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(SetupError, match="KOPT_HOME"):
        include_root(Settings(home=tmp_path / "file"))


def test_the_header_wheels_hold_the_conversion_headers() -> None:
    include, cccl = cuda_include_folders()
    assert (include / "cuda_fp4.h").is_file()
    assert (cccl / "nv" / "target").is_file()


def test_missing_header_wheels_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(include_tree, "pip_toolkit_root", lambda: None)
    with pytest.raises(SetupError, match="pip install"):
        cuda_include_folders()


def test_a_single_missing_header_wheel_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for header in ("include/cuda_bf16.h", "include/cccl/nv/target"):
        (tmp_path / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header).touch()
    monkeypatch.setattr(include_tree, "pip_toolkit_root", lambda: tmp_path)
    with pytest.raises(SetupError, match=r"\(nvidia-cuda-crt\)"):
        cuda_include_folders()
