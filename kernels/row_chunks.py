"""Splitting the rows of a large matrix, so that fp64 temporaries of an oracle stay small."""

from collections.abc import Callable
from typing import TypeVar

from .wide_work import run_wide, slices

T = TypeVar("T")

CHUNK_ELEMENTS = 1 << 19
"""What one thread does at once."""
BLOCK_ELEMENTS = 1 << 17
"""1 MiB of float64: a handful of temporaries stays in caches near the core."""


def row_chunks(rows: int, columns: int) -> list[slice]:
    """Return slices that cover `rows` in order, each of at most CHUNK_ELEMENTS elements.

    A slice has at least one row, however long rows are.
    """
    return slices(rows, CHUNK_ELEMENTS // max(1, columns))


def for_row_chunks(rows: int, columns: int, work: Callable[[slice], T]) -> list[T]:
    """Return what `work` gives for slices that cover `rows`, in order, from several threads.

    A slice has BLOCK_ELEMENTS elements at most, but at least one row. Rows must not depend on one
    another.
    """

    def in_blocks(chunk: slice) -> list[T]:
        step = BLOCK_ELEMENTS // max(1, columns)
        return [work(block) for block in slices(chunk.stop, step, chunk.start)]

    return [each for given in run_wide(in_blocks, row_chunks(rows, columns)) for each in given]
