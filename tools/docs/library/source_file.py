"""What obtaining a library gives: its source files, in memory. How they came is not told."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class LibrarySource:
    """A library of production code, as the index and its filters know it."""

    key: str
    """As a filter names it, e.g. `flashinfer`."""
    version: str | None
    """Of the project, or the commit; None where none is known."""
    license: str | None
    """SPDX expression, of files that do not name another; None where it is not known, as for
    folders of the user."""
    quality: float
    """Weight in the ranking, above 0, at most 1."""
    holds: str
    """One sentence: what is in it."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a library."""

    source: LibrarySource
    path: str
    """Inside the source, with forward slashes; the same for every way to obtain it."""
    data: bytes

    @property
    def text(self) -> str:
        """Return the text; bytes that are no UTF-8 are replaced."""
        return self.data.decode("utf-8", errors="replace").replace("\r\n", "\n")

    @property
    def sha(self) -> str:
        """Return the SHA-256 of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()
