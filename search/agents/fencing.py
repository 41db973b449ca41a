"""Texts of others inside a prompt: sources, documents, messages of compilers, what models wrote.

Each stands between two lines that carry the digest of what is between them. No text can hold its
own digest, so that none can end its fence and go on as if kopt spoke; the common part of the
system prompt says that what is fenced is data.
"""

import hashlib
import re

from kopt.tools.facts.wording import lines, plain

_MARK_DIGITS = 16
_FOLDERS = re.compile(r"(?<![\w<.])/(?:[\w.+~-]+/)+")


def fenced(title: str, text: str) -> str:
    """Return `text` as data under `title`: control characters shown, no place of this machine."""
    body = lines(text)
    mark = hashlib.sha256(body.encode(errors="replace")).hexdigest()[:_MARK_DIGITS]
    return f"<<<data {mark}: {plain(title)}>>>\n{body}\n<<<end of data {mark}>>>"


def without_folders(text: str) -> str:
    """Return `text` on one line, of every absolute path only what it ends with."""
    return _FOLDERS.sub("", plain(text))
