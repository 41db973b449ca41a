"""A candidate: one CUDA source file and its content id."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kopt.config.errors import ToolError

MAX_SOURCE_BYTES = 1 << 20


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


def read_candidate(path: Path) -> Candidate:
    """Return the candidate in `path`.

    Raises:
        ToolError: No such file, not UTF-8, or over 1 MiB.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > MAX_SOURCE_BYTES:
        raise ToolError(f"{path} has {len(data)} bytes; a candidate has at most {MAX_SOURCE_BYTES}")
    try:
        return Candidate(data.decode(), path.name)
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8 text (byte {error.start})") from error
