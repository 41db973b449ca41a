"""Folders for what processes hand each other: in memory where that has room, swept if left behind.

A folder is locked as long as its process lives. What a killed process leaves is found by its free
lock and removed by the next process that makes a folder for the same purpose.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from .locks import file_lock, try_lock

_MEMORY = Path("/dev/shm")
_LOCK = ".lock"
_YOUNG_S = 60.0
"""A folder this young may not have its lock yet."""


@contextmanager
def scratch_folder(purpose: str, needed_bytes: int) -> Generator[Path]:
    """Give an empty folder with room for `needed_bytes`; it is removed afterwards.

    Args:
        purpose: A word in its name, `kopt-<purpose>-...`; folders are swept purpose by purpose.
        needed_bytes: Decides whether it lies in memory.
    """
    parent = _parent(needed_bytes)
    _sweep_once(parent, purpose)
    with tempfile.TemporaryDirectory(prefix=_prefix(purpose), dir=parent) as name:
        folder = Path(name)
        with file_lock(folder / _LOCK):
            yield folder


def sweep(parent: Path, purpose: str) -> None:
    """Remove the folders for `purpose` below `parent` that no living process holds."""
    for folder in parent.glob(f"{_prefix(purpose)}*"):
        try:
            young = time.time() - folder.stat().st_mtime < _YOUNG_S
            if young or folder.stat().st_uid != os.getuid():
                continue
            lock = try_lock(folder / _LOCK)
        except OSError:  # another process was quicker
            continue
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()


@lru_cache
def _sweep_once(parent: Path, purpose: str) -> None:
    sweep(parent, purpose)


def _prefix(purpose: str) -> str:
    return f"kopt-{purpose}-"


def _parent(needed_bytes: int) -> Path:
    usual = Path(tempfile.gettempdir())
    if not os.access(_MEMORY, os.W_OK | os.X_OK):
        return usual
    return _MEMORY if shutil.disk_usage(_MEMORY).free > 2 * needed_bytes + (64 << 20) else usual
