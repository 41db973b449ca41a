"""The lock that makes one process the writer of a run, and says who it is.

An advisory `flock` on `run.lock`: the kernel drops it when its holder dies, however that happens,
so a stale lock cannot exist. The text in the file is for people only and decides nothing.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from kopt.config.errors import ToolError

_FILE_NAME = "run.lock"
# `is_run_locked` holds a shared lock for microseconds; that must not look like a writer.
_ATTEMPTS = 3
_PAUSE_S = 0.01


class RunLock:
    """The held lock of one run folder; released by `close` or by the end of the process."""

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            ToolError: Another process holds it; the message names that process.
        """
        self._descriptor = os.open(folder / _FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        if not _lock(self._descriptor):
            holder = os.pread(self._descriptor, 200, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise ToolError(
                f"run {folder.name} is being worked on by {holder or 'another process'};"
                " wait for it or stop it, then resume"
            )
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"process {os.getpid()} (boot {boot_id()})\n".encode(), 0)

    def close(self) -> None:
        """Release the lock; the file stays, because deleting it would let two processes lock."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Return the lock itself, already held."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.close()


def is_run_locked(folder: Path) -> bool:
    """Return whether some process drives the run in `folder` at this moment."""
    try:
        descriptor = os.open(folder / _FILE_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def boot_id() -> str:
    """Return the id that the kernel drew at boot: a changed one means that the host went down."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
