"""A candidate: one CUDA source file and its content id."""

import hashlib
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kopt.config.errors import ToolError

MAX_SOURCE_BYTES = 1 << 20
_BYTE_ORDER_MARK = "\ufeff"
"""Editors put it before UTF-8 text unseen, and no compiler needs it."""
MAX_HYPOTHESIS_CHARACTERS = 2000
"""The longest sentence on why a candidate should be faster."""


@dataclass(frozen=True)
class Candidate:
    """One proposed device source with its launch plan in the leading comment."""

    source: str
    name: str = "candidate.cu"
    """File name shown in diagnostics; not part of the identity."""

    @cached_property
    def id(self) -> str:
        """SHA-256 of the UTF-8 source, 64 hex digits."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def candidate_of_text(source: str, name: str = "candidate.cu") -> Candidate:
    """Return the candidate with this source; a byte order mark before it is left out.

    Raises:
        ToolError: Not Unicode, or over 1 MiB as UTF-8; the message does not say whose source.
    """
    try:
        data = source.encode()
    except UnicodeEncodeError as error:  # a lone surrogate, which no file could hold
        raise ToolError(f"source is not valid Unicode text (character {error.start})") from error
    _refuse_more(len(data), f"source has {len(data)} bytes")
    return Candidate(source.removeprefix(_BYTE_ORDER_MARK), name)


def read_candidate(path: Path) -> Candidate:
    """Return the candidate in `path`.

    Raises:
        ToolError: No such file, no ordinary file, not UTF-8, or over 1 MiB.
    """
    try:
        data = _read_ordinary(path)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    return _candidate_of_bytes(data, path)


def read_open_candidate(descriptor: int, path: Path) -> Candidate:
    """Return the candidate in an ordinary file that is open already, and close it.

    Raises:
        ToolError: It cannot be read, is not UTF-8, or over 1 MiB.
    """
    try:
        with open(descriptor, "rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    return _candidate_of_bytes(data, path)


def _candidate_of_bytes(data: bytes, path: Path) -> Candidate:
    _refuse_more(len(data), f"{path} is too large")
    try:
        return candidate_of_text(data.decode(), path.name)
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8 text (byte {error.start})") from error


def _refuse_more(size_bytes: int, what: str) -> None:
    if size_bytes > MAX_SOURCE_BYTES:
        raise ToolError(f"{what}: a candidate has at most {MAX_SOURCE_BYTES} bytes")


def _read_ordinary(path: Path) -> bytes:
    """Return at most one byte more than a candidate may have, without waiting for a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise ToolError(f"cannot read {path}: it is no ordinary file")
        return file.read(MAX_SOURCE_BYTES + 1)
