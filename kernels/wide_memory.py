"""Large arrays copied, filled and compared by several threads; small ones by the caller's alone."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .wide_work import run_wide

PIECE_BYTES = 4 << 20
"""Done by one thread at once: some 0.5 ms."""
BLOCK_BYTES = 1 << 19
"""Compared at once: what that takes stays in a core's own cache."""

Bytes = npt.NDArray[np.uint8]


def copy_wide(target: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
    """Copy `source` to `target`, arrays of one shape and dtype that do not overlap."""
    if target.nbytes < 2 * PIECE_BYTES or target.ndim == 0:
        target[...] = source
        return

    def copy(part: slice) -> None:
        target[part] = source[part]

    run_wide(copy, _parts(target.shape[0], target.nbytes // target.shape[0]))


def fill_wide(target: Bytes, byte: int) -> None:
    """Fill the bytes `target` with one value."""

    def fill(part: slice) -> None:
        target[part] = byte

    run_wide(fill, _parts(target.size, 1))


def count_differing(one: Bytes, other: Bytes) -> int:
    """Return how many bytes differ in two ranges of one size."""
    if one.size != other.size:
        raise ValueError(f"{one.size} bytes are compared with {other.size}")

    def count(part: slice) -> int:
        return _count(one[part], other[part])

    return sum(run_wide(count, _parts(one.size, 1)))


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
