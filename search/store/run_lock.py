"""The lock that makes one process the writer of a run, and says who it is.

An advisory `flock` on `run.lock`: the kernel drops it when its holder dies, however that happens,
so a stale lock cannot exist. The text in the file is for people only and decides nothing. Whoever
finds the lock taken may wait for it, up to a limit, and is told who has it.
"""

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError

_FILE_NAME = "run.lock"
# `is_run_locked` holds a shared lock for microseconds; that must not look like a writer.
_ATTEMPTS = 3
_PAUSE_S = 0.01
_POLL_S = 0.1
_TOLD_EVERY_S = 5.0


@dataclass(frozen=True)
class LockClaim:
    """How a process asks for a run's lock."""

    purpose: str = "kopt run"
    """What it does with the run; shown to those who wait meanwhile."""
    limit_s: float = 0.0
    """How long it waits for another process."""
    say: Callable[[str], None] = ignore
    """Told who holds the lock, at once and every few seconds."""


AT_ONCE = LockClaim()


class RunLock:
    """The held lock of one run folder; released by `close` or by the end of the process."""

    def __init__(self, folder: Path, claim: LockClaim) -> None:
        """Take the lock, waiting as long as `claim` allows.

        Raises:
            ToolError: Another process still holds it; the message names that process.
        """
        self._descriptor = os.open(folder / _FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _lock(self._descriptor) and not self._wait(folder.name, claim):
                waited = f"; waited {claim.limit_s:g} s" if claim.limit_s else ""
                raise ToolError(
                    f"run {folder.name} is being worked on by {self._holder()}{waited};"
                    " wait for it or stop it, then resume"
                )
        except BaseException:
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        text = f"process {os.getpid()} ({claim.purpose})\nboot {boot_id()}\n"
        os.pwrite(self._descriptor, text.encode(), 0)

    def _wait(self, run: str, claim: LockClaim) -> bool:
        """Return whether the lock could be taken within the limit of `claim`."""
        deadline = time.monotonic() + claim.limit_s
        told_at = -_TOLD_EVERY_S
        while (now := time.monotonic()) < deadline:
            if now - told_at >= _TOLD_EVERY_S:
                claim.say(f"{run} is held by {self._holder().partition(',')[0]}; waiting")
                told_at = now
            time.sleep(min(_POLL_S, deadline - now))
            if _lock(self._descriptor):
                return True
        return False

    def _holder(self) -> str:
        """Return who wrote the lock file last: `process 12 (kopt run), boot 6f...`."""
        text = os.pread(self._descriptor, 200, 0).decode(errors="replace")
        return ", ".join(text.split("\n")).strip(", ") or "another process"

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
