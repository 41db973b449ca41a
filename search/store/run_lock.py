"""The lock that makes one process the writer of a run, and says who it is.

An advisory `flock` on `run.lock`: the kernel drops it when its holder dies, however that happens,
so a stale lock cannot exist. The text in the file is for people only and decides nothing. Whoever
finds the lock taken may wait for it, up to a limit, and is told who has it.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.locks import FileLock, is_locked, try_lock

_FILE_NAME = "run.lock"
_POLL_S = 0.1
_TOLD_EVERY_S = 5.0


@dataclass(frozen=True)
class LockClaim:
    """How a process asks for a run's lock."""

    purpose: str = "kopt run"
    """The purpose that processes are shown that wait meanwhile."""
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
        self._path = folder / _FILE_NAME
        lock = try_lock(self._path) or self._wait(folder.name, claim)
        if lock is None:
            waited = f"; waited {claim.limit_s:g} s" if claim.limit_s else ""
            raise ToolError(
                f"run {folder.name} is being worked on by {self._holder()}{waited};"
                " wait for it or stop it, then resume"
            )
        self._lock = lock
        lock.describe(f"process {os.getpid()} ({claim.purpose})\nboot {boot_id()}\n")

    def _wait(self, run: str, claim: LockClaim) -> FileLock | None:
        """Return the lock, or None if it could not be taken within the limit of `claim`."""
        deadline = time.monotonic() + claim.limit_s
        told_at = -_TOLD_EVERY_S
        while (now := time.monotonic()) < deadline:
            if now - told_at >= _TOLD_EVERY_S:
                claim.say(f"{run} is held by {self._holder().partition(',')[0]}; waiting")
                told_at = now
            time.sleep(min(_POLL_S, deadline - now))
            if (lock := try_lock(self._path)) is not None:
                return lock
        return None

    def _holder(self) -> str:
        """Return who wrote the lock file last: `process 12 (kopt run), boot 6f...`."""
        text = self._path.read_bytes()[:200].decode(errors="replace")
        return ", ".join(text.split("\n")).strip(", ") or "another process"

    def close(self) -> None:
        """Release the lock; the file stays, because deleting it would let two processes lock."""
        self._lock.release()

    def __enter__(self) -> Self:
        """Return the lock itself, already held."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.close()


def is_run_locked(folder: Path) -> bool:
    """Return whether some process drives the run in `folder` at this moment."""
    try:
        return is_locked(folder / _FILE_NAME)
    except OSError:
        return False


def boot_id() -> str:
    """Return the id that the kernel drew at boot: a changed one means that the host went down."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
