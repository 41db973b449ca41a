"""Work on the parts of large arrays, by several threads: one core does less than memory could.

numpy lets go of the interpreter's lock while it computes. What is small should not come here: the
threads cost some 50 us.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

MOST_THREADS = 8
"""More do not get more out of the memory of one socket."""

_here = threading.local()


def run_wide(does: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """Return what `does` gives for each part, in order; none is under way then.

    Called by `does` itself, the caller's thread does everything: threads that waited for one
    another would never end.
    """
    if len(parts) < 2 or threads() < 2 or getattr(_here, "is_one", False):
        return [does(part) for part in parts]
    futures = [_pool().submit(does, part) for part in parts]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
        for future in futures:
            if not future.cancelled():
                future.exception()


def slices(stop: int, step: int, start: int = 0) -> list[slice]:
    """Return slices of at most `step` items, at least one, that cover `start` to `stop`."""
    step = max(1, step)
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


def threads() -> int:
    """Return how many are at work at once."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), "wide work", _begin)


def _begin() -> None:
    _here.is_one = True


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

    run_wide(copy, slices(target.shape[0], PIECE_BYTES // (target.nbytes // target.shape[0])))


def fill_wide(target: Bytes, byte: int) -> None:
    """Fill the bytes `target` with one value."""

    def fill(part: slice) -> None:
        target[part] = byte

    run_wide(fill, slices(target.size, PIECE_BYTES))


def count_differing(one: Bytes, other: Bytes) -> int:
    """Return how many bytes differ in two ranges of one size."""
    if one.size != other.size:
        raise ValueError(f"{one.size} bytes are compared with {other.size}")

    def count(part: slice) -> int:
        return _count(one[part], other[part])

    return sum(run_wide(count, slices(one.size, PIECE_BYTES)))


def _count(one: Bytes, other: Bytes) -> int:
    """Compare eight bytes at a time, and only where some differ each by itself."""
    found = 0
    for part in slices(one.size, BLOCK_BYTES):
        block, others = one[part], other[part]
        whole = block.size // 8 * 8
        if not np.array_equal(block[:whole].view(np.uint64), others[:whole].view(np.uint64)):
            whole = 0
        found += int(np.count_nonzero(block[whole:] != others[whole:]))
    return found
