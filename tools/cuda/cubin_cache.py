"""The compile cache: folders named by the hash of a compile, shared by any number of processes.

An entry is complete or absent. A process that finds none compiles under the lock of the key while
the others wait for the result. What is read is checked against its hash, so that a damaged entry is
built again instead of believed.
"""

import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kopt.config.files import ensure_folder, publish_folder, staging_folder
from kopt.config.locks import key_lock
from kopt.kernels.compile_result import KernelResources, Toolchain
from kopt.kernels.record import Diagnostic, Record
from kopt.kernels.status import Status
from kopt.tools.sandbox.policy import SandboxLevel

CUBIN_NAME = "candidate.cubin"
LOG_NAME = "compiler.log"
_UNIT_NAME = "unit.json"


class CompiledUnit(Record):
    """The compile of one source for one architecture, with one set of defines by one compiler."""

    status: Status
    """passed, plan_error, compile_error, refused or timeout."""
    diagnostics: tuple[Diagnostic, ...] = ()
    flagged: tuple[str, ...] = ()
    cubin_sha256: str | None
    """Hash of the machine code; None if the compile failed."""
    module_global_bytes: int = 0
    kernels: tuple[KernelResources, ...] = ()
    producer_waits: tuple[str, ...] | None = None
    """Kernels that wait for the producer of a programmatic dependent launch; None if unknown."""
    toolchain: Toolchain
    compile_s: float
    sandbox: SandboxLevel
    repeatable: bool = True
    """False for a time-out or a killed compiler: another try may end otherwise."""


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
    ensure_folder(folder.parent)
    payload = unit.model_dump_json().encode()
    with staging_folder(folder) as staging:
        (staging / LOG_NAME).write_bytes(log.encode())
        if cubin is not None:
            (staging / CUBIN_NAME).write_bytes(cubin)
        digest = hashlib.sha256(payload).hexdigest()
        (staging / _UNIT_NAME).write_bytes(f"{digest}\n".encode() + payload)
        publish_folder(staging, folder, replaces=True, durable=True)


def entry_lock(cache: Path, key: str, wait_s: float) -> AbstractContextManager[bool]:
    """Hold the lock of the entry of `key`; see `key_lock`."""
    path = _entry_folder(cache, key).with_suffix(".lock")
    ensure_folder(path.parent)
    return key_lock(path, wait_s)


def _entry_folder(cache: Path, key: str) -> Path:
    return cache.absolute() / key[:2] / key
