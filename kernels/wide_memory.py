"""Large arrays copied, filled and compared by several threads: one core moves less than memory can.

numpy lets go of the interpreter's lock inside these operations. Pieces are large enough for that to
pay; small arrays are done at once, by the caller's thread.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

PIECE_BYTES = 4 << 20
"""Done by one thread at once: some 0.5 ms."""
BLOCK_BYTES = 1 << 19
"""Compared at once: what that takes stays in a core's own cache."""
_MOST_THREADS = 8
"""More do not get more out of the memory of one socket."""

Bytes = npt.NDArray[np.uint8]


def copy_wide(target: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
    """Copy `source` to `target`, arrays of one shape and dtype that do not overlap."""
    if target.nbytes < 2 * PIECE_BYTES or target.ndim == 0:
        target[...] = source
        return

    def copy(part: slice) -> int:
        target[part] = source[part]
        return 0

    _sum(copy, _parts(target.shape[0], target.nbytes // target.shape[0]))


def fill_wide(target: Bytes, byte: int) -> None:
    """Fill the bytes `target` with one value."""

    def fill(part: slice) -> int:
        target[part] = byte
        return 0

    _sum(fill, _parts(target.size, 1))


def count_differing(one: Bytes, other: Bytes) -> int:
    """Return how many bytes differ in two ranges of one size."""
    if one.size != other.size:
        raise ValueError(f"{one.size} bytes are compared with {other.size}")

    def count(part: slice) -> int:
        return _count(one[part], other[part])

    return _sum(count, _parts(one.size, 1))


def _count(one: Bytes, other: Bytes) -> int:
    """Compare eight bytes at a time, and only where some differ each by itself."""
    found = 0
    for start in range(0, one.size, BLOCK_BYTES):
        block, others = one[start : start + BLOCK_BYTES], other[start : start + BLOCK_BYTES]
        whole = block.size // 8 * 8
        if not np.array_equal(block[:whole].view(np.uint64), others[:whole].view(np.uint64)):
            whole = 0
        found += int(np.count_nonzero(block[whole:] != others[whole:]))
    return found


def _parts(count: int, bytes_each: int) -> list[slice]:
    step = max(1, PIECE_BYTES // max(1, bytes_each))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _sum(does: Callable[[slice], int], parts: list[slice]) -> int:
    """Return the sum over all parts; nobody reads or writes them any more then."""
    if len(parts) < 2 or _threads() < 2:
        return sum(map(does, parts))
    return sum(list(_pool().map(does, parts)))


def _threads() -> int:
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), "wide memory")
