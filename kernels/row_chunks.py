"""Splitting the rows of a large matrix, so that fp64 temporaries of an oracle stay small."""

from collections.abc import Callable

from .wide_work import run_wide, slices

CHUNK_ELEMENTS = 1 << 19
"""4 MiB of float64: a handful of temporaries stays in a CPU's last-level cache."""


def row_chunks(rows: int, columns: int) -> list[slice]:
    """Return slices that cover `rows` in order, each of at most CHUNK_ELEMENTS elements.

    A slice has at least one row, however long rows are.
    """
    return slices(rows, CHUNK_ELEMENTS // max(1, columns))


def for_row_chunks(rows: int, columns: int, work: Callable[[slice], None]) -> None:
    """Call `work` with each slice of `row_chunks`, on several threads at once.

    Rows must not depend on one another.
    """
    run_wide(work, row_chunks(rows, columns))
