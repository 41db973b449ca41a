"""Who uses a KOPT_HOME at this moment: what is cleared must not be missed by another process.

Every process of kopt holds a shared lock of the home while it works. Whoever holds it alone may
remove what the others would rely on. A home that cannot be written, or a file system without
locks, is used without one: nothing can be cleared there either.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from .errors import InfraError

_FILE_NAME = "in-use.lock"


@contextmanager
def using_home(home: Path) -> Generator[None]:
    """Say that this process uses `home` while the block runs; waits while another clears it."""
    descriptor = _locked(home, fcntl.LOCK_SH)
    try:
        yield
    finally:
        _close(descriptor)


@contextmanager
def home_alone(home: Path) -> Generator[bool]:
    """Keep every other process from using `home`; False, and nothing kept, if one does already."""
    descriptor = _locked(home, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield descriptor is not None
    finally:
        _close(descriptor)


@contextmanager
def deleted_caches_told(home: Path) -> Generator[None]:
    """Tell of a file of KOPT_HOME's caches that is gone in the middle of work.

    What kopt removes itself nobody misses; a user who deletes the folder takes no lock.

    Raises:
        InfraError: Such a file is not there.
    """
    try:
        yield
    except FileNotFoundError as error:
        cache = home.absolute() / "cache"
        if not Path(os.fsdecode(error.filename or "")).is_relative_to(cache):
            raise
        raise InfraError(
            f"{error.filename} was deleted while kopt worked with it ('kopt cache --clear' takes"
            " only what nobody uses)"
        ) from error


def _locked(home: Path, kind: int) -> int | None:
    """Return the locked file, open; None where it cannot be had."""
    path = home / _FILE_NAME
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except PermissionError:  # of another user, or read-only: a shared lock needs no more
            descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, kind)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
