"""Pieces of a long function put together again: a hit is a function, a piece is how it is found."""

from collections.abc import Sequence

from .records import Chunk


def whole(pieces: Sequence[Chunk]) -> Chunk:
    """Return the chunk that `pieces` make up: overlapping ones of one function, in order."""
    first, *others = pieces
    if not others:
        return first
    lines = first.body.split("\n")
    end = first.end_line
    for piece in others:
        lines += piece.body.split("\n")[end + 1 - piece.start_line :]
        end = piece.end_line
    return first.model_copy(
        update={
            "body": "\n".join(lines),
            "end_line": end,
            "tags": _union([piece.tags for piece in pieces]),
            "arch": _union([piece.arch for piece in pieces]),
            "dtype": _union([piece.dtype for piece in pieces]),
        }
    )


def _union(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
