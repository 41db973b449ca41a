"""The lock under which an index is built: one process builds, the others wait."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def build_lock(folder: Path, on_wait: Callable[[], None] | None = None) -> Generator[bool]:
    """Hold the lock of `folder`; it ends with its process, however that ends.

    Args:
        folder: Where the index lies.
        on_wait: Called once if another process holds it.

    Yields:
        Whether another process had to be waited for.
    """
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
