"""Sources of documents and their files: names, licences, contents."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LibrarySource:
    """A library of production code, as the index and its filters know it."""

    key: str
    """Key as a filter names it, e.g. `flashinfer`."""
    version: str | None
    """Version of the project, or the commit; None where none is known."""
    license: str | None
    """SPDX expression, of files that do not name another; None where it is not known, as for
    folders of the user."""
    quality: float
    """Weight in the ranking, above 0, at most 1."""
    holds: str
    """One sentence: what is in it."""

    def facts(self) -> dict[str, Any]:
        """Return the fields as a record of `records.py` has them, whose `source` is the key."""
        return {"source" if name == "key" else name: value for name, value in vars(self).items()}


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


PROPRIETARY = "LicenseRef-NVIDIA-Proprietary"
"""Indexed on this machine, never handed on: CUDA's headers, and files that say so themselves."""
_HEAD_LINES = 40
"""Lines at the top of a file in which the notices of all its owners stand."""
_SPDX = re.compile(r"SPDX-License-Identifier:[ \t]*([^\n]*)")
_NAME = r"\(*[A-Za-z0-9][A-Za-z0-9.+-]*\)*"
_EXPRESSION = re.compile(rf"{_NAME}(?: (?:AND|OR|WITH) {_NAME})*")
_RESTRICTED = re.compile(r"strictly prohibited|express license agreement", re.IGNORECASE)
_BLANK_NOTICE = re.compile(r"\{\{\s*copyright\s*\}\}")
_COMMENT_MARKS = re.compile(r"[\s*/#]+")


def license_of(file: SourceFile) -> str | None:
    """Return the licence as an SPDX expression; None where it is not known.

    Several SPDX lines hold all together. What stands in one and is no expression, such as the
    title of an agreement, is not known; neither is a notice that a template leaves to be filled in.
    """
    head = "\n".join(file.text.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    found = dict.fromkeys(_words(match[1]) for match in _SPDX.finditer(head))
    if found and all(_EXPRESSION.fullmatch(one) for one in found):
        return next(iter(found)) if len(found) == 1 else " AND ".join(map(_operand, found))
    if _RESTRICTED.search(_words(head)):
        return PROPRIETARY
    return None if found or _BLANK_NOTICE.search(head) else file.source.license


def may_be_handed_on(license_id: str | None) -> bool:
    """Say whether a licence is known, and no part of it is one of a vendor's own."""
    return license_id is not None and "LicenseRef-" not in license_id


def _operand(expression: str) -> str:
    return f"({expression})" if " " in expression else expression


def _words(text: str) -> str:
    """Return `text` without comment marks and line breaks."""
    return _COMMENT_MARKS.sub(" ", text).strip(" \"'-")


Member = tuple[str, bytes]
"""Path of a file inside its source, and its content."""


class SourceUnavailable(Exception):
    """A source cannot be had; the message is one line that says why and what to do."""


SOURCES = {
    "headers": "Device code of <kopt/...>: PTX idioms, each with a body for the simulator.",
    "problems": "What each problem computes, and its reference kernel.",
    "winners": "Promoted kernels with their measured speedups; unproven ones, which say so.",
    "docs": "The manual: candidates, statuses, correctness, measurement, the simulator, runs.",
    "notes": "Techniques by strategy family: when to try one, what to change, what to look at.",
    "intrinsics": "CUDA intrinsics and PTX instructions: form, targets, rules, example, source.",
    "gpus": "Data sheets: SMs, clocks, bandwidth, registers and shared memory of the GPUs.",
}
"""Key to what it holds, in the order in which `kopt docs sources` lists them."""
