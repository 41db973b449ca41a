"""Scratch folders: removed after use, and swept when a killed process left one."""

import fcntl
import os
from pathlib import Path

import pytest

from kopt.config.scratch_folder import scratch_folder, sweep


def old_folder(parent: Path) -> Path:
    """Return a folder as an execution leaves it, an hour old."""
    folder = parent / "kopt-sim-left"
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / "out").write_bytes(bytes(16))
    os.utime(folder, (0, 0))
    return folder


def test_folder_is_gone_after_use_even_if_the_execution_failed() -> None:
    with pytest.raises(ZeroDivisionError), scratch_folder("sim", 16) as folder:
        assert folder.is_dir()
        raise ZeroDivisionError
    assert not folder.exists()


def test_folder_that_nobody_holds_is_swept(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    sweep(tmp_path, "sim")
    assert not folder.exists()


def test_folder_in_use_is_kept(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep(tmp_path, "sim")
        assert folder.is_dir()


def test_young_folder_and_foreign_names_are_kept(tmp_path: Path) -> None:
    young = tmp_path / "kopt-sim-young"
    foreign, of_a_worker = tmp_path / "somebody", tmp_path / "kopt-worker-left"
    for folder in (young, foreign, of_a_worker):
        folder.mkdir()
    for folder in (foreign, of_a_worker):
        os.utime(folder, (0, 0))
    sweep(tmp_path, "sim")
    assert all(folder.is_dir() for folder in (young, foreign, of_a_worker))
