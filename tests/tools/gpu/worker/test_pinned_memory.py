"""Page-locked memory is used again, and holds nothing of its last user."""

import mmap
import os

import pytest

from kopt.tools.gpu.worker.driver import CudaError
from kopt.tools.gpu.worker.pinned_memory import PinnedPool
from support.host_cuda import HostCuda

HUGE = 2 << 20


def _sizes(cuda: HostCuda) -> list[int]:
    return sorted(cuda.pinned.values())


def test_what_is_given_back_is_lent_again_and_wiped(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pool.lent(1000) as first:
        first[:] = 7
    with pool.lent(600) as second:
        assert second.size == 600
        assert not second.any()
        assert second.ctypes.data == first.ctypes.data
    assert _sizes(host_cuda) == [HUGE]


def test_all_that_is_lent_is_locked(host_cuda: HostCuda) -> None:
    with PinnedPool().lent(3 * HUGE - 1) as memory:
        assert host_cuda.pinned == {memory.ctypes.data: 3 * HUGE}
        assert memory.ctypes.data % mmap.PAGESIZE == 0


def test_what_is_in_use_is_lent_to_nobody_else(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pool.lent(100) as one, pool.lent(100) as other:
        one[:], other[:] = 1, 2
        assert one.tolist() == [1] * 100
    assert _sizes(host_cuda) == [HUGE, HUGE]


def test_the_smallest_that_fits_is_lent(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pool.lent(HUGE), pool.lent(3 * HUGE), pool.lent(2 * HUGE):
        pass
    with pool.lent(HUGE + 1), pool.lent(2 * HUGE + 1):
        pass
    assert _sizes(host_cuda) == [HUGE, 2 * HUGE, 3 * HUGE]


def test_a_larger_one_takes_the_place_of_one_that_is_too_small(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    for size in (1, 2, 3):
        with pool.lent(size * HUGE):
            pass
    assert _sizes(host_cuda) == [3 * HUGE]


def test_memory_of_a_block_that_fails_is_wiped_and_kept(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pytest.raises(OSError, match="disk"), pool.lent(64) as memory:
        memory[:] = 3
        raise OSError("disk")
    with pool.lent(64) as again:
        assert again.ctypes.data == memory.ctypes.data
        assert not again.any()
        assert _sizes(host_cuda) == [HUGE]


def test_more_than_the_host_has_is_refused_before_it_is_touched(host_cuda: HostCuda) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"), PinnedPool().lent(whole // 3):
        pass
    assert not host_cuda.pinned


def test_where_the_system_refuses_to_lock_ordinary_memory_is_lent(host_cuda: HostCuda) -> None:
    host_cuda.refuses_to_lock = True
    pool = PinnedPool()
    for size in (1, 2 * HUGE):  # the second takes the place of the first, which was never locked
        with pool.lent(size) as memory:
            memory[:] = 7
            assert memory.size == size
    assert not host_cuda.pinned
