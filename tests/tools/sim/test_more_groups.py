"""Cooperative groups beyond tiles: scans, partitions, copies, groups of one thread."""

import numpy as np
import pytest

from support.sim_run import Sim, SimCase

PROLOGUE = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const int t = threadIdx.x;
"""


def _run(sim: Sim, body: str) -> list[int]:
    given = np.arange(64, dtype=np.int32)
    outputs = {"out": np.zeros(64, np.int32)}
    case = SimCase(f"{PROLOGUE}{body}\n}}", {"in": given}, outputs, block=(64, 1, 1))
    return [int(value) for value in sim.outputs(case)["out"]]


def test_scans_combine_the_ranks_before(sim: Sim) -> None:
    body = """
    const auto tile = cg::tiled_partition<8>(block);
    out[t] = cg::inclusive_scan(tile, in[t]) * 1000 +
             cg::exclusive_scan(warp, 1, cg::plus<int>());
    """
    expected = [sum(range(t // 8 * 8, t + 1)) * 1000 + t % 32 for t in range(64)]
    assert _run(sim, body) == expected


@pytest.mark.slow  # a program of its own
def test_partitions_hold_the_lanes_of_one_label(sim: Sim) -> None:
    body = """
    const auto third = cg::labeled_partition(warp, t % 3);
    const auto side = cg::binary_partition(warp, t % 32 < 5);
    out[t] = third.thread_rank() * 100 + side.size();
    """
    expected = [t % 32 // 3 * 100 + (5 if t % 32 < 5 else 27) for t in range(32)]
    assert _run(sim, body)[:32] == expected


@pytest.mark.slow  # a program of its own
def test_values_are_matched_by_rank(sim: Sim) -> None:
    body = """
    const auto tile = cg::tiled_partition<4>(block);
    int same = 7, all = 0;
    const unsigned pairs = tile.match_any(t & 1), none = tile.match_all(t, same);
    const unsigned every = tile.match_all(t / 4, all);
    out[t] = pairs == (t & 1 ? 10 : 5) && none == 0 && same == 0 && every == 15 && all == 1;
    """
    assert _run(sim, body) == [1] * 64


def test_groups_of_any_kind_have_a_size_and_a_rank(sim: Sim) -> None:
    body = """
    cg::thread_group groups[3] = {block, cg::tiled_partition(block, 16), cg::this_thread()};
    int sizes = 0;
    for (const auto& group : groups) {
      group.sync();
      sizes = sizes * 100 + group.size();
    }
    out[t] = sizes + 1000000 * (cg::thread_rank(block) == t && cg::group_size(warp) == 32);
    """
    assert _run(sim, body) == [1641601] * 64


@pytest.mark.slow  # a program of its own
def test_one_thread_is_invoked(sim: Sim) -> None:
    body = """
    __shared__ int calls;
    if (t == 0) calls = 0;
    block.sync();
    cg::invoke_one(warp, [&](int by) { atomicAdd(&calls, by); }, 3);
    block.sync();
    out[t] = calls;
    """
    assert _run(sim, body) == [6] * 64


@pytest.mark.slow  # a program of its own
def test_copies_of_a_group_land_at_the_wait(sim: Sim) -> None:
    body = """
    __shared__ __align__(16) int staged[64];
    cg::memcpy_async(block, staged, in, sizeof(int) * 61);
    cg::memcpy_async(block, staged + 61, 3, in + 61, 3);
    cg::wait(block);
    out[t] = staged[63 - t];
    """
    assert _run(sim, body) == list(range(63, -1, -1))
