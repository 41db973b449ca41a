"""The compile cache: content-addressed folders that any number of processes share.

An entry is complete or absent: it is written beside its place, synced, and renamed. Whoever finds
none compiles under the key's lock while the others wait for the result. What is read is checked
against its hash, so that a damaged entry is built again instead of believed.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kopt.config.settings import ensure_folder

from .compiled_unit import CompiledUnit

CUBIN_NAME = "candidate.cubin"
LOG_NAME = "compiler.log"
_UNIT_NAME = "unit.json"
_LOCK_POLL_S = 0.02


@dataclass(frozen=True)
class CacheEntry:
    """A finished compile in the cache."""

    unit: CompiledUnit
    folder: Path

    @property
    def cubin_path(self) -> Path:
        """The cubin; it exists if the unit has a hash."""
        return self.folder / CUBIN_NAME

    @property
    def log_path(self) -> Path:
        """The whole compiler output."""
        return self.folder / LOG_NAME


def load_entry(cache: Path, key: str) -> CacheEntry | None:
    """Return the entry of `key`; None if it is absent or damaged."""
    folder = _entry_folder(cache, key)
    try:
        digest, _, payload = (folder / _UNIT_NAME).read_text("utf-8").partition("\n")
        if digest != hashlib.sha256(payload.encode()).hexdigest():
            return None
        entry = CacheEntry(CompiledUnit.model_validate_json(payload), folder)
        if entry.unit.cubin_sha256 is not None:
            found = hashlib.sha256(entry.cubin_path.read_bytes()).hexdigest()
            if found != entry.unit.cubin_sha256:
                return None
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return entry


def store_entry(cache: Path, key: str, unit: CompiledUnit, cubin: bytes | None, log: str) -> None:
    """Write the entry of `key`, in place of a damaged one if there is one."""
    folder = _entry_folder(cache, key)
    parent = ensure_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=parent, prefix="new-") as staging:
        fresh = Path(staging) / "entry"
        fresh.mkdir()
        payload = unit.model_dump_json()
        digest = hashlib.sha256(payload.encode()).hexdigest()
        _write_synced(fresh / LOG_NAME, log.encode())
        if cubin is not None:
            _write_synced(fresh / CUBIN_NAME, cubin)
        _write_synced(fresh / _UNIT_NAME, f"{digest}\n{payload}".encode())
        _sync_folder(fresh)
        if folder.exists():
            shutil.move(folder, Path(staging) / "damaged")
        try:
            os.rename(fresh, folder)
        except OSError:
            if not folder.is_dir():  # else a process without the lock was first
                raise
    _sync_folder(parent)


@contextmanager
def key_lock(cache: Path, key: str, wait_s: float) -> Generator[bool, None, None]:
    """Hold the lock of `key`; yields False, without it, if others held it for `wait_s`.

    The lock ends with its process, however that ends. It saves work and protects the replacement
    of damaged entries; correctness rests on the rename alone.
    """
    path = _entry_folder(cache, key).with_suffix(".lock")
    ensure_folder(path.parent)
    descriptor = _acquire(path, time.monotonic() + wait_s)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, deadline: float) -> int | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() >= deadline:
                return None
            time.sleep(_LOCK_POLL_S)
            continue
        if _is_current(path, descriptor):
            return descriptor
        os.close(descriptor)  # its last holder removed it in between


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _entry_folder(cache: Path, key: str) -> Path:
    return cache.absolute() / key[:2] / key


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
