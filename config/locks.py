"""Locks of files between processes: the kernel drops one with its holder, however that ends.

They are advisory (`flock`), so that a stale lock cannot exist. What a lock file says of its holder
is for people and decides nothing.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ATTEMPTS = 3
"""`is_locked` holds a shared lock for microseconds, which must not look like a holder."""
_PAUSE_S = 0.01
_POLL_S = 0.02


@dataclass(frozen=True)
class FileLock:
    """An exclusive lock that this process holds until `release`, or until its end."""

    descriptor: int
    """The open lock file, for reading and writing."""
    waited: bool = False
    """Whether another process had to be waited for."""

    def describe(self, text: str) -> None:
        """Replace what the lock file says of its holder."""
        data = text.encode()
        os.pwrite(self.descriptor, data, 0)
        os.ftruncate(self.descriptor, len(data))

    def release(self) -> None:
        """Let other processes have the lock; its file stays."""
        os.close(self.descriptor)


def try_lock(path: Path) -> FileLock | None:
    """Lock the file `path`, made (mode 0600) if need be; None if another process holds it."""
    while True:
        descriptor = _open(path)
        try:
            if not _try_descriptor(descriptor):
                os.close(descriptor)
                return None
            if _is_current(path, descriptor):
                return FileLock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its last holder removed the file in between


def is_locked(path: Path) -> bool:
    """Return whether some process holds the lock of the file `path` at this moment.

    Raises:
        OSError: The file cannot be read, unless because it is not there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return is_descriptor_locked(descriptor)
    finally:
        os.close(descriptor)


def is_descriptor_locked(descriptor: int) -> bool:
    """Return whether an open file is locked exclusively through another descriptor."""
    try:
        # Shared: several processes may look at once without taking each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


@contextmanager
def file_lock(path: Path, on_wait: Callable[[], None] | None = None) -> Generator[FileLock]:
    """Hold the lock of the file `path`, made (mode 0600) if need be, however long it takes.

    Args:
        path: The lock file; it stays.
        on_wait: Called once if another process holds the lock.
    """
    descriptor = _open(path)
    try:
        waited = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            if on_wait:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield FileLock(descriptor, waited)
    finally:
        os.close(descriptor)


@contextmanager
def key_lock(path: Path, wait_s: float) -> Generator[bool]:
    """Hold the lock of one key of a cache; False, without it, if others held it for `wait_s`.

    Its file `path` is removed afterwards, since there are as many as keys. The lock saves work;
    correctness rests on files and folders that are renamed into their place.
    """
    deadline = time.monotonic() + wait_s
    while (lock := try_lock(path)) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if lock is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _try_descriptor(descriptor: int) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
