"""Locks between processes: of a folder whose index is built, of a file that is obtained."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


def build_lock(
    folder: Path, on_wait: Callable[[], None] | None = None
) -> AbstractContextManager[bool]:
    """Hold the lock of the index in `folder`; see `file_lock`."""
    return file_lock(folder / "lock", on_wait)


@contextmanager
def file_lock(path: Path, on_wait: Callable[[], None] | None = None) -> Generator[bool]:
    """Hold the lock that is the file `path`; it ends with its process, however that ends.

    Args:
        path: Of the lock itself, made if need be; it stays.
        on_wait: Called once if another process holds it.

    Yields:
        Whether another process had to be waited for.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        waited = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            if on_wait:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield waited
    finally:
        os.close(descriptor)
