"""Candidates by path: what is read, and that nothing outside the workspace can be."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.server.protocol.workspace import chosen_candidate

TEXT = "// a candidate\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with one candidate, beside a file that must stay unread."""
    folder = tmp_path / "workspace"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "mine.cu").write_text(TEXT, "utf-8")
    (tmp_path / "secret.cu").write_text("secret", "utf-8")
    (tmp_path / "workspace-2").mkdir()
    (tmp_path / "workspace-2" / "other.cu").write_text("other", "utf-8")
    return folder.resolve()


def read(path: str, *roots: Path) -> str:
    """Return the text that `path` leads to."""
    return chosen_candidate("", path, roots).source


def refused(path: str, *roots: Path) -> str:
    """Return why `path` is not read."""
    with pytest.raises(ToolError) as caught:
        read(path, *roots)
    assert "secret" not in str(caught.value).replace("secret.cu", "")
    return str(caught.value)


@pytest.mark.parametrize("path", ["sub/mine.cu", "./sub/../sub/mine.cu", "sub//mine.cu"])
def test_relative_path_is_read_below_the_workspace(path: str, root: Path) -> None:
    assert read(path, root) == TEXT


def test_absolute_path_is_read_and_names_the_candidate(root: Path) -> None:
    path = str(root / "sub" / "mine.cu")
    assert chosen_candidate("", path, (root,)).name == "mine.cu"


def test_second_workspace_is_searched_too(root: Path, tmp_path: Path) -> None:
    second = (tmp_path / "workspace-2").resolve()
    assert read("other.cu", root, second) == "other"
    assert read("sub/mine.cu", second, root) == TEXT


@pytest.mark.parametrize("path", ["../secret.cu", "sub/../../secret.cu", "../workspace-2/other.cu"])
def test_path_that_leads_out_is_refused(path: str, root: Path) -> None:
    assert "leads out of the workspace" in refused(path, root)


def test_absolute_path_elsewhere_is_refused(root: Path) -> None:
    assert "leads out of the workspace" in refused(str(root.parent / "secret.cu"), root)


def test_link_that_leads_out_is_refused(root: Path) -> None:
    (root / "link.cu").symlink_to(root.parent / "secret.cu")
    (root / "folder").symlink_to(root.parent)
    assert "leads out of the workspace" in refused("link.cu", root)
    assert "leads out of the workspace" in refused("folder/secret.cu", root)


def test_file_that_becomes_a_link_on_the_way_is_never_read_outside(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process may do between any two looks at a path: here between every two."""
    mine, swapped = root / "sub" / "mine.cu", root / "swapped.cu"
    real: dict[str, Callable[..., Any]] = {
        name: getattr(os, name) for name in ("open", "readlink", "fstat", "lstat", "stat")
    }

    def swap() -> None:
        link = root / "new"
        link.symlink_to(root.parent / "secret.cu")
        os.replace(link, swapped)

    def restore() -> None:
        swapped.unlink(missing_ok=True)
        os.link(mine, swapped)

    def wrapped(name: str, at: int) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            found = real[name](*arguments, **keywords)
            if str(arguments[0]).endswith("swapped.cu") or isinstance(arguments[0], int):
                seen.append(name)
                if len(seen) == at:
                    swap()
            return found

        return call

    for at in range(1, 6):
        seen: list[str] = []
        restore()
        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(os, name, wrapped(name, at))
            try:
                source = read("swapped.cu", root)
            except ToolError:
                continue
        assert source == TEXT


def test_link_to_another_kind_of_file_is_refused(root: Path) -> None:
    (root / "notes.txt").write_text("secret", "utf-8")
    (root / "link.cu").symlink_to(root / "notes.txt")
    assert "leads out of the workspace" in refused("link.cu", root)


def test_link_inside_the_workspace_is_followed(root: Path) -> None:
    (root / "link.cu").symlink_to(root / "sub" / "mine.cu")
    assert read("link.cu", root) == TEXT


@pytest.mark.parametrize("path", ["sub/mine.cpp", "/etc/passwd", ".env", "sub", "mine.cu/"])
def test_other_kinds_of_file_are_refused(path: str, root: Path) -> None:
    assert "does not end in .cu" in refused(path, root)


@pytest.mark.parametrize(
    "path", ["none.cu", "~/mine.cu", "$HOME/mine.cu", "a\0b.cu", "x" * 5000 + ".cu", "file:///a.cu"]
)
def test_path_without_a_file_is_refused_with_the_folders(path: str, root: Path) -> None:
    assert str(root) in refused(path, root)


def test_circle_of_links_is_refused(root: Path) -> None:
    (root / "a.cu").symlink_to(root / "b.cu")
    (root / "b.cu").symlink_to(root / "a.cu")
    assert "there is no file" in refused("a.cu", root)


def test_pipe_and_folder_are_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe.cu")
    (root / "folder.cu").mkdir()
    assert "no ordinary file" in refused("pipe.cu", root)
    assert "cannot read" in refused("folder.cu", root)


def test_file_that_is_too_large_or_no_text_is_refused(root: Path) -> None:
    (root / "large.cu").write_bytes(b" " * ((1 << 20) + 1))
    (root / "binary.cu").write_bytes(b"\xff\xfe")
    assert "at most 1048576 bytes" in refused("large.cu", root)
    assert "not UTF-8" in refused("binary.cu", root)


def test_without_a_workspace_only_text_is_taken() -> None:
    assert "--workspace" in refused("mine.cu")
    assert chosen_candidate(TEXT, "", ()).source == TEXT


def test_text_that_is_too_large_or_not_unicode_is_refused() -> None:
    with pytest.raises(ToolError, match="at most 1048576"):
        chosen_candidate("é" * (1 << 19) + "x", "", ())
    with pytest.raises(ToolError, match="not valid Unicode"):
        chosen_candidate("a\ud800b", "", ())
