"""Page-locked memory is used again, and holds nothing of its last user."""

import numpy as np
import pytest

from kopt.tools.gpu.worker.pinned_memory import PinnedPool
from support.host_cuda import HostCuda


def _sizes(cuda: HostCuda) -> list[int]:
    return sorted(len(block) for block in cuda.pinned.values())


def test_what_is_given_back_is_lent_again_and_wiped(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pool.lent(1000) as first:
        first[:] = 7
    with pool.lent(600) as second:
        assert second.size == 600
        assert not second.any()
        second[:] = 9
    assert _sizes(host_cuda) == [1000]
    assert not np.frombuffer(next(iter(host_cuda.pinned.values())), np.uint8).any()


def test_what_is_in_use_is_lent_to_nobody_else(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pool.lent(100) as one, pool.lent(100) as other:
        one[:], other[:] = 1, 2
        assert one.tolist() == [1] * 100
    assert _sizes(host_cuda) == [100, 100]


def test_the_smallest_that_fits_is_lent(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pool.lent(100), pool.lent(300), pool.lent(200):
        pass
    with pool.lent(150), pool.lent(250):
        pass
    assert _sizes(host_cuda) == [100, 200, 300]


def test_a_larger_one_takes_the_place_of_one_that_is_too_small(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    for size in (100, 200, 300):
        with pool.lent(size):
            pass
    assert _sizes(host_cuda) == [300]


def test_memory_of_a_block_that_fails_is_wiped_and_kept(host_cuda: HostCuda) -> None:
    pool = PinnedPool()
    with pytest.raises(OSError, match="disk"), pool.lent(64) as memory:
        memory[:] = 3
        raise OSError("disk")
    assert not np.frombuffer(next(iter(host_cuda.pinned.values())), np.uint8).any()
    with pool.lent(64):
        assert _sizes(host_cuda) == [64]
