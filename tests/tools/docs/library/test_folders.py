"""Folders of the user."""

import os
from pathlib import Path

import pytest

from kopt.tools.docs.library import file_filter
from kopt.tools.docs.library.file_filter import folder_members
from kopt.tools.docs.sources import SourceUnavailable
from support.archives import KERNEL


def _write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(KERNEL)


def test_wanted_sources_are_read_in_order(tmp_path: Path) -> None:
    _write(tmp_path, "z.cu", "a/b.cuh", ".git/c.cu", ".d.cu", "node_modules/e.cu", "f.txt")
    (tmp_path / "host.h").write_bytes(b"int host();")
    assert list(folder_members(tmp_path)) == [("z.cu", KERNEL), ("a/b.cuh", KERNEL)]


def test_links_are_not_followed(tmp_path: Path) -> None:
    _write(tmp_path, "secret/a.cu", "own/b.cu")
    (tmp_path / "own" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "own" / "file.cu").symlink_to(tmp_path / "secret" / "a.cu")
    (tmp_path / "own" / "loop").symlink_to(tmp_path / "own")
    assert dict(folder_members(tmp_path / "own")) == {"b.cu": KERNEL}


def test_folder_that_is_a_link_itself_is_read(tmp_path: Path) -> None:
    _write(tmp_path, "real/a.cu")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert dict(folder_members(tmp_path / "link")) == {"a.cu": KERNEL}


def test_what_is_no_plain_file_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cu")
    _write(tmp_path, "a.cu")
    assert dict(folder_members(tmp_path)) == {"a.cu": KERNEL}


def test_name_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.cu")).write_bytes(KERNEL)
    assert list(folder_members(tmp_path)) == []


@pytest.mark.parametrize(("limit", "said"), [("MAX_ENTRIES", "files"), ("MAX_BYTES", "bytes")])
def test_huge_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    _write(tmp_path, "a.cu", "b.cu", "c.cu")
    monkeypatch.setattr(file_filter, limit, 2)
    with pytest.raises(SourceUnavailable, match=f"more than 2 {said}.*: name a smaller folder"):
        list(folder_members(tmp_path))


@pytest.mark.parametrize("name", ["missing", "file.cu"])
def test_what_is_no_folder_is_named(tmp_path: Path, name: str) -> None:
    _write(tmp_path, "file.cu")
    with pytest.raises(SourceUnavailable, match=f"{name} is not a folder"):
        list(folder_members(tmp_path / name))
