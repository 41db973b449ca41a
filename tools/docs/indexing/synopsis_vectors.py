"""The vectors of what chunks are said to do, for a list by likeness to a question.

The card of a chunk has its synopsis beside its name, tags, path and signature, which blur it. A
sentence about a kernel and a sentence that asks for it are compared here without those.
"""

from array import array

from kopt.tools.docs.chunking.synopses import synopses_of
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.vectors import vector_model


class SynopsisVectors:
    """The synopses of the chunks of one index, collected while it is written."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[int]] = {}

    def add(self, chunk_id: int, chunk: Chunk) -> None:
        """Take the synopsis of a chunk, if there is one; ids ascend."""
        if said := "; ".join(synopses_of(chunk)):
            self._chunks.setdefault(said, []).append(chunk_id)

    def packed(self) -> tuple[bytes, bytes]:
        """Return chunk ids, ascending, of 32 bits each, and their vectors; nothing without a model.

        Pieces of a function and its copies share a vector.
        """
        model = vector_model() if self._chunks else None
        if model is None:
            return b"", b""
        rows = dict(zip(self._chunks, model.rows(list(self._chunks)), strict=True))
        of_chunk = {one: rows[said] for said, chunks in self._chunks.items() for one in chunks}
        ids = sorted(of_chunk)
        return array("i", ids).tobytes(), b"".join(of_chunk[one] for one in ids)
