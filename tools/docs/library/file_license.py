"""The licence of one file: what its head says, else that of the library that it is from."""

import re

from .source_file import SourceFile

PROPRIETARY = "LicenseRef-NVIDIA-Proprietary"
"""Indexed on this machine, never handed on: CUDA's headers, and files that say so themselves."""
_HEAD_LINES = 40
"""Where notices stand, of several owners one after the other."""
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
