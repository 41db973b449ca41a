"""Chunks without repetitions: libraries copy each other, and files differ only in their numbers.

The same code, comments and whitespace aside, is one chunk with several places. So is the code of
several files of which only digits differ: instantiations for head size 64, 128, 256. Within one
file such code is kept, since there it is a table that is searched by its numbers.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b

from kopt.tools.docs.records import Chunk

from .units import CPP_IDLE

LEAST_MASKED_CHARACTERS = 120
"""Shorter code with other numbers is not taken for the same: a digit is much of what it says."""

_PYTHON_IDLE = re.compile(r"#[^\n]*|\s+")
_DIGITS = re.compile(r"\d+")


def merged(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return `chunks` in order, the first of each repetition with the places of the others."""
    kept: dict[str, Chunk] = {}
    places: dict[str, list[str]] = {}
    first_of: dict[bytes, str] = {}
    for chunk in chunks:
        same, alike = _keys(chunk)
        first = first_of.get(same)
        if first is None and alike is not None:
            first = first_of.get(alike)
            if first is not None and _place(kept[first]) == _place(chunk):
                first = None
        if first is None:
            kept[chunk.uid] = chunk
            first = chunk.uid
        else:
            places.setdefault(first, []).append(_shown(chunk, kept[first]))
        first_of.setdefault(same, first)
        if alike is not None:
            first_of.setdefault(alike, first)
    return [_with_places(chunk, places.get(uid, ())) for uid, chunk in kept.items()]


def _keys(chunk: Chunk) -> tuple[bytes, bytes | None]:
    """Return (key of the code, key of the code without its numbers; None if it is short)."""
    idle = _PYTHON_IDLE if chunk.language == "python" else CPP_IDLE
    code = idle.sub("", chunk.body)
    masked = _DIGITS.sub("0", code) if len(code) >= LEAST_MASKED_CHARACTERS else None
    return _digest("=", code), None if masked is None else _digest("~", masked)


def _digest(mark: str, code: str) -> bytes:
    return blake2b(f"{mark}{code}".encode(errors="replace"), digest_size=16).digest()


def _place(chunk: Chunk) -> tuple[str, str]:
    return chunk.source, chunk.path


def _shown(chunk: Chunk, first: Chunk) -> str:
    place = f"{chunk.path}:{chunk.start_line}"
    return place if chunk.source == first.source else f"{chunk.source}:{place}"


def _with_places(chunk: Chunk, others: Sequence[str]) -> Chunk:
    if not others:
        return chunk
    return chunk.model_copy(update={"also_at": tuple(dict.fromkeys((*chunk.also_at, *others)))})
