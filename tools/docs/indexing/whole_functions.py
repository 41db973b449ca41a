"""Pieces of a long function put together again: a hit is a function, a piece is how it is found."""

from collections.abc import Sequence

from kopt.tools.docs.chunking.code_pieces import OVERLAP_LINES
from kopt.tools.docs.records import Chunk


def whole(pieces: Sequence[Chunk]) -> Chunk:
    """Return the chunk that `pieces` make up: overlapping ones of one function, in order."""
    first, *others = pieces
    if not others:
        return first
    lines = first.body.split("\n")
    for piece in others:
        further = piece.body.split("\n")
        lines += further[_overlap(lines, further) :]
    return first.model_copy(
        update={
            "body": "\n".join(lines),
            "end_line": pieces[-1].end_line,
            "tags": _union([piece.tags for piece in pieces]),
            "arch": _union([piece.arch for piece in pieces]),
            "dtype": _union([piece.dtype for piece in pieces]),
        }
    )


def _overlap(lines: Sequence[str], further: Sequence[str]) -> int:
    """Return how many of the last lines are the first ones of what follows.

    By their text: a body may leave out lines of its range, such as the methods of a class.
    """
    longest = min(len(lines), len(further), OVERLAP_LINES)
    return next((at for at in range(longest, 0, -1) if lines[-at:] == further[:at]), 0)


def _union(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
