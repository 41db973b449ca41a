"""cooperative_groups: tiles, coalesced groups, the grid and clusters."""

from dataclasses import replace

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Array, Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each

HEAD = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k"""


def _run(sim: Sim, body: str, rows: int, threads: int = 64) -> Array:
    case = SimCase(
        f"{HEAD}(int* out) {{ const int t = threadIdx.x;\n{body}\n}}",
        outputs={"out": np.zeros((rows, threads), np.int32)},
        block=(threads, 1, 1),
    )
    return sim.outputs(case)["out"]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_tiles_of_every_size(sim: Sim, size: int) -> None:
    out = _run(
        sim,
        f"""cg::thread_block block = cg::this_thread_block();
        cg::thread_block_tile<{size}> tile = cg::tiled_partition<{size}>(block);
        int* o = out + t;
        o[0] = tile.shfl(t, 0); o[64] = tile.shfl_xor(t, {size} / 2);
        o[128] = tile.shfl_down(t, 1); o[192] = tile.shfl_up(t, 1);
        o[256] = tile.ballot(t % 2); o[320] = cg::reduce(tile, t, cg::plus<int>());
        o[384] = cg::reduce(tile, t, cg::greater<int>());
        o[448] = tile.meta_group_rank() * 100 + tile.meta_group_size();
        o[512] = tile.thread_rank() * 100 + tile.size();
        o[576] = tile.any(t == 5) * 2 + tile.all(t < 32);
        tile.sync();""",
        rows=10,
    )
    t = np.arange(64)
    base, rank = t // size * size, t % size
    assert out[0].tolist() == base.tolist()
    assert out[1].tolist() == (t ^ (size // 2)).tolist()
    assert out[2].tolist() == np.where(rank + 1 < size, t + 1, t).tolist()
    assert out[3].tolist() == np.where(rank > 0, t - 1, t).tolist()
    votes = [sum(1 << r for r in range(size) if (b + r) % 2) for b in base.tolist()]
    assert out[4].view(np.uint32).tolist() == votes
    assert out[5].tolist() == (size * base + size * (size - 1) // 2).tolist()
    assert out[6].tolist() == (base + size - 1).tolist()
    assert out[7].tolist() == (t // size * 100 + 64 // size).tolist()
    assert out[8].tolist() == (rank * 100 + size).tolist()
    assert out[9].tolist() == (2 * (base == 5 // size * size) + (t < 32)).tolist()


def test_a_tile_of_a_tile_knows_its_parent(sim: Sim) -> None:
    out = _run(
        sim,
        """auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        cg::thread_block_tile<4> quad = cg::tiled_partition<4>(warp);
        out[t] = quad.meta_group_rank(); out[64 + t] = quad.meta_group_size();
        out[128 + t] = cg::reduce(quad, t, cg::less<int>());""",
        rows=3,
    )
    t = np.arange(64)
    assert out.tolist() == [(t % 32 // 4).tolist(), [8] * 64, (t // 4 * 4).tolist()]


def test_coalesced_threads_are_those_of_the_branch(sim: Sim) -> None:
    out = _run(
        sim,
        """out[t] = -1; out[64 + t] = -1;
        if (t % 3 == 0) {
          cg::coalesced_group group = cg::coalesced_threads();
          out[t] = group.thread_rank() * 100 + group.size();
          out[64 + t] = group.shfl(t, 1);
        }
        __syncthreads();""",
        rows=2,
    )
    members = [[x for x in range(w, w + 32) if x % 3 == 0] for w in (0, 32)]
    for lanes in members:
        for rank, t in enumerate(lanes):
            assert out[0, t] == rank * 100 + len(lanes)
            assert out[1, t] == lanes[1]


def test_block_and_grid_ranks_of_three_dimensions(sim: Sim) -> None:
    case = SimCase(
        HEAD
        + """(int* out) {
        auto block = cg::this_thread_block(); auto grid = cg::this_grid();
        dim3 i = block.thread_index(), b = block.group_index();
        out[grid.thread_rank()] = ((b.z * 100 + b.y * 10 + b.x) * 1000) +
                                  i.z * 100 + i.y * 10 + i.x + 0 * block.size() + 0 * grid.size();
        }""",
        outputs={"out": np.zeros(12 * 24, np.int32)},  # a tensor has five axes at most
        grid=(2, 3, 2),
        block=(3, 4, 2),
    )
    out = sim.outputs(case)["out"].reshape(2, 3, 2, 2, 4, 3)
    bz, by, bx, z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, (bz * 100 + by * 10 + bx) * 1000 + z * 100 + y * 10 + x)


EXCHANGE = (
    HEAD
    + """(int* out, int* other, int* partial) {
  __shared__ int kept[32];
  kept[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  partial[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  cg::this_grid().sync();
  const int from = (blockIdx.x + 1) % gridDim.x;
  out[blockIdx.x * 32 + threadIdx.x] = partial[from * 32 + threadIdx.x ^ 1];
  other[blockIdx.x * 32 + threadIdx.x] = kept[threadIdx.x];
}"""
)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_grid_sync_exchanges_values_and_keeps_shared_memory(sim: Sim, seed: int) -> None:
    outputs = {name: np.zeros((5, 32), np.int32) for name in ("out", "other", "partial")}
    case = SimCase(EXCHANGE, outputs=outputs, grid=(5, 1, 1), cooperative=True)
    out = sim.with_(seed=seed).outputs(case)
    assert out["out"][:, 0].tolist() == [1, 2, 3, 4, 0]
    assert out["other"].tolist() == [[b * 100 + t for t in range(32)] for b in range(5)]


def test_grid_sync_without_a_cooperative_launch_gives_its_line(sim: Sim) -> None:
    outputs = {name: np.zeros((2, 32), np.int32) for name in ("out", "other", "partial")}
    found = sim.fault(SimCase(EXCHANGE, outputs=outputs, grid=(2, 1, 1)), Status.CRASH)
    assert "cooperative: true" in found.message
    assert found.line == line_of(EXCHANGE, "sync()")


def test_a_block_that_skips_the_grid_barrier_is_a_divergence(sim: Sim) -> None:
    source = HEAD + "(int* out) { if (blockIdx.x != 1 || threadIdx.x) cg::this_grid().sync(); }"
    case = SimCase(source, outputs={"out": np.zeros(1, np.int32)}, grid=(3, 1, 1), cooperative=True)
    found = sim.fault(case, Status.BARRIER_DIVERGENCE)
    assert "block 1, or its first thread, has ended" in found.message
    assert found.line == line_of(source, "sync()")
    some_left = replace(case, source=source.replace("!= 1 ||", "== 3 ||"))
    assert sim.execute(some_left).status is Status.BARRIER_DIVERGENCE
    others_left = replace(
        case, source=source.replace("!= 1 || threadIdx.x", "!= 1 || threadIdx.x < 5")
    )
    assert (
        sim.execute(others_left).status is Status.PASSED
    )  # other exited threads are not waited for
    source = (
        HEAD
        + """(int* out) { if (blockIdx.x == 1) __syncthreads();
      else if (threadIdx.x) cg::this_grid().sync(); else __syncthreads(); }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(1, np.int32)}, grid=(3, 1, 1), cooperative=True)
    found = sim.fault(case, Status.BARRIER_DIVERGENCE)
    assert "a grid barrier" in found.message


def test_cluster_barriers_order_the_blocks_of_one_cluster_only(sim: Sim) -> None:
    text = (
        HEAD
        + """(int* out, int* partial) {
      auto cluster = cg::this_cluster();
      partial[blockIdx.x * 32 + threadIdx.x] = cluster.block_rank() * 10 + cluster.num_blocks();
      cluster.sync();
      const int from = blockIdx.x %s;
      out[blockIdx.x * 32 + threadIdx.x] = partial[from * 32 + threadIdx.x];
    }"""
    )
    outputs = {name: np.zeros((8, 32), np.int32) for name in ("out", "partial")}
    within = SimCase(text % "^ 1", outputs=outputs, grid=(8, 1, 1), cluster=(2, 1, 1))
    assert sim.outputs(within)["out"][:, 0].tolist() == [12, 2] * 4
    across = SimCase(text % "^ 2", outputs=outputs, grid=(8, 1, 1), cluster=(2, 1, 1))
    for workers in (1, 2):
        assert sim.with_(workers=workers).execute(across).status is Status.DATA_RACE


def test_blocks_of_one_thread_meet_at_the_grid_barrier(sim: Sim) -> None:
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void k(int* out) {
      out[blockIdx.x] = blockIdx.x;
      cooperative_groups::this_grid().sync();
      out[4 + blockIdx.x] = out[3 - blockIdx.x];
    }"""
    outputs = {"out": np.zeros(8, np.int32)}
    case = SimCase(source, outputs=outputs, grid=(4, 1, 1), block=(1, 1, 1), cooperative=True)
    assert sim.outputs(case)["out"].tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
