"""Distributed shared memory and the two steps of a cluster barrier."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Array, Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each
BLOCKS = 8
HEAD = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int* out) {
  __shared__ int sums[4], other[40];
  extern __shared__ int wide[];
  cg::cluster_group cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank(), next = (rank + 1) % 4;
  int* o = out + blockIdx.x * 32 + t;
"""


def case(body: str, threads: int = 32, smem: int = 512) -> SimCase:
    """Return a kernel of two clusters of four blocks."""
    return SimCase(
        f"{HEAD}{body}\n}}",
        outputs={"out": np.zeros((BLOCKS, 32), np.int32)},
        grid=(BLOCKS, 1, 1),
        block=(threads, 1, 1),
        cluster=(4, 1, 1),
        smem=smem,
    )


def run(sim: Sim, body: str) -> Array:
    return sim.outputs(case(body))["out"]


SUM_OVER_CLUSTER = """
  cluster.barrier_arrive();
  const int mine = blockIdx.x * 10;
  cluster.barrier_wait();
  if (t < 4) cluster.map_shared_rank(sums, t)[rank] = mine;
  cluster.sync();
  *o = sums[0] + sums[1] + sums[2] + sums[3];
"""


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("workers", [1, 2])
def test_blocks_of_a_cluster_write_into_one_another_s_memory(
    sim: Sim, seed: int, workers: int
) -> None:
    found = sim.with_(seed=seed, workers=workers).outputs(case(SUM_OVER_CLUSTER))["out"]
    assert (found[:4] == 60).all()
    assert (found[4:] == 220).all()


def test_blocks_read_static_and_dynamic_memory_of_their_neighbors(sim: Sim) -> None:
    found = run(
        sim,
        """other[t] = rank * 100 + t; wide[t] = -rank;
        cluster.sync();
        *o = cluster.map_shared_rank(other, next)[t];
        *o += 1000 * cluster.map_shared_rank(wide, next)[t];
        cluster.sync();""",
    )
    after = (np.arange(BLOCKS) + 1) % 4
    np.testing.assert_array_equal(found, (after * -900)[:, None] + np.arange(32))


def test_atomics_meet_in_another_block_s_memory(sim: Sim) -> None:
    found = run(
        sim,
        """if (t == 0) sums[0] = 0;
        cluster.sync();
        atomicAdd(cluster.map_shared_rank(&sums[0], 0), 1);
        cluster.sync();
        *o = *cluster.map_shared_rank(sums, 0);
        cluster.sync();""",
    )
    assert (found == 128).all()


def test_a_flag_in_another_block_s_memory_orders_what_came_before_it(sim: Sim) -> None:
    found = run(
        sim,
        """if (t == 0) other[0] = 0;
        cluster.sync();
        if (t == 0 && rank == 1) {
          *o = 7;
          __threadfence();
          atomicExch(cluster.map_shared_rank(other, 0), 1);
        } else if (t == 0 && rank == 0) {
          while (atomicAdd(&other[0], 0) == 0) {}
          __threadfence();
          o[1] = o[32];
        }
        cluster.sync();""",
    )
    assert found[[0, 4], 1].tolist() == [7, 7]


def test_narrow_and_wide_accesses_reach_another_block(sim: Sim) -> None:
    found = run(
        sim,
        """reinterpret_cast<unsigned char*>(other)[4 * t] = rank; other[t] = rank + 1;
        __syncthreads();
        if (t < 8) reinterpret_cast<int4*>(other)[t] = make_int4(rank, rank, rank, rank);
        cluster.sync();
        const unsigned char* bytes =
            reinterpret_cast<unsigned char*>(cluster.map_shared_rank(other, next));
        *o = bytes[4 * t] + 10 * reinterpret_cast<const int4*>(bytes)[t % 8].w;
        cluster.sync();""",
    )
    assert (found[:, 0] == 11 * ((np.arange(BLOCKS) + 1) % 4)).all()


def test_the_own_rank_is_the_own_memory_and_pointers_know_their_block(sim: Sim) -> None:
    found = run(
        sim,
        """*o = (cluster.map_shared_rank(other, rank) == other)
           + 10 * cluster.query_shared_rank(cluster.map_shared_rank(other, next))
           + 100 * cluster.query_shared_rank(other)
           + 1000 * (cluster.map_shared_rank(cluster.map_shared_rank(other, next), rank) == other);
        cluster.sync();""",
    )
    rank = np.arange(BLOCKS) % 4
    assert (found[:, 5] == 1001 + 10 * ((rank + 1) % 4) + 100 * rank).all()


def test_shapes_of_a_cluster_group_are_those_of_its_blocks(sim: Sim) -> None:
    found = run(
        sim,
        """*o = cluster.thread_index().x + 1000 * cluster.dim_threads().x
             + 1000000 * (cluster.size() == cluster.num_threads());""",
    )
    assert found[5, 7] == 1000000 + 1000 * 128 + 1 * 32 + 7


FAULTS = {
    "no barrier before the first access": (
        "cluster.map_shared_rank(other, next)[t] = 1; cluster.sync();",
        Status.DATA_RACE,
        "need not have started",
    ),
    "a store after the arrival": (
        """cluster.sync(); cluster.barrier_arrive(); other[t] = rank; cluster.barrier_wait();
        *o = cluster.map_shared_rank(other, next)[t]; cluster.sync();""",
        Status.DATA_RACE,
        "stored to it",
    ),
    "a load before the wait": (
        """cluster.sync(); other[t] = rank; cluster.barrier_arrive();
        *o = cluster.map_shared_rank(other, next)[t]; cluster.barrier_wait();""",
        Status.DATA_RACE,
        "of block",
    ),
    "fenced atomics, but each block on a flag of its own": (
        """if (t == 0) other[0] = 0;
        cluster.sync();
        if (t == 0) { atomicAdd(&other[0], 1); cluster.map_shared_rank(sums, 0)[0] = rank;
                      __threadfence(); atomicAdd(&other[0], 1); }
        cluster.sync();""",
        Status.DATA_RACE,
        "stored to it",
    ),
    "the next round overwrites what others still read": (
        """other[t] = rank; cluster.sync();
        *o = cluster.map_shared_rank(other, next)[t]; __syncthreads(); other[t] = 5;
        cluster.sync();""",
        Status.DATA_RACE,
        "of block",
    ),
    "an end while others read": (
        """other[t] = rank; cluster.sync(); if (rank == 3) return;
        for (int i = 0; i < 2; ++i) __syncthreads();
        *o = cluster.map_shared_rank(other, 3)[t];""",
        Status.DATA_RACE,
        "may end before another uses it",
    ),
    "a use after the end": (
        """other[t] = rank; cluster.sync(); if (rank == 0) return;
        *o = cluster.map_shared_rank(other, 0)[t];""",
        Status.DATA_RACE,
        "has ended",
    ),
    "one element too many": (
        "cluster.sync(); cluster.map_shared_rank(other, next)[9 + t] = 1; cluster.sync();",
        Status.OUT_OF_BOUNDS,
        "other",
    ),
    "far away": (
        "cluster.sync(); cluster.map_shared_rank(other, next)[100000 + t] = 1; cluster.sync();",
        Status.OUT_OF_BOUNDS,
        "",
    ),
    "beyond the dynamic memory": (
        "cluster.sync(); cluster.map_shared_rank(wide, next)[128] = 1; cluster.sync();",
        Status.OUT_OF_BOUNDS,
        "dynamic",
    ),
    "nobody wrote it": (
        "cluster.sync(); *o = cluster.map_shared_rank(other, next)[t]; cluster.sync();",
        Status.UNINITIALIZED_READ,
        "other",
    ),
    "a misaligned vector": (
        """cluster.sync();
        *reinterpret_cast<int2*>(cluster.map_shared_rank(other, next) + 1) = make_int2(1, 2);
        cluster.sync();""",
        Status.MISALIGNED,
        "other",
    ),
    "a rank that is none": (
        "cluster.sync(); cluster.map_shared_rank(other, rank + 1)[t] = 1; cluster.sync();",
        Status.OUT_OF_BOUNDS,
        "rank 4 of a cluster of 4 blocks",
    ),
    "a pointer to global memory": (
        "cluster.sync(); cluster.map_shared_rank(out, next)[t] = 1;",
        Status.OUT_OF_BOUNDS,
        "not in shared memory",
    ),
    "two arrivals": (
        "cluster.barrier_arrive(); cluster.barrier_arrive(); cluster.barrier_wait();",
        Status.BARRIER_DIVERGENCE,
        "arrives at the cluster barrier twice",
    ),
    "a wait without an arrival": (
        "cluster.barrier_wait();",
        Status.BARRIER_DIVERGENCE,
        "without having arrived",
    ),
    "some threads never arrive": (
        "if (rank == 2 && t == 9) __syncthreads(); else cluster.sync();",
        Status.BARRIER_DIVERGENCE,
        "a cluster barrier",
    ),
}


@pytest.mark.parametrize(("body", "status", "said"), FAULTS.values(), ids=FAULTS)
def test_mistakes_are_found_in_any_order(sim: Sim, body: str, status: Status, said: str) -> None:
    found = sim.fault(case(body), status)
    assert said in found.message
    assert found.line is not None and found.line >= line_of(HEAD, "int* o =")
    assert sim.with_(seed=3).execute(case(body)).status is status


def test_work_between_arrival_and_wait_is_still_checked_within_the_block(sim: Sim) -> None:
    body = """cluster.barrier_arrive(); other[t] = t; %s
      *o = other[t ^ 33 %% 32]; cluster.barrier_wait();"""
    assert sim.execute(case(body % "__syncthreads();")).status is Status.PASSED
    assert sim.execute(case(body % "")).status is Status.DATA_RACE


def test_whoever_meets_a_thread_that_waited_knows_what_it_knows(sim: Sim) -> None:
    body = """other[t] = rank; cluster.barrier_arrive();
      if (t < 32) cluster.barrier_wait();
      __syncthreads();
      if (t >= 32) out[blockIdx.x * 32 + t - 32] = cluster.map_shared_rank(other, next)[t - 32];
      __syncthreads();
      if (t >= 32) cluster.barrier_wait();
      cluster.sync();"""
    body = body.replace("other[t] = rank", "if (t < 32) other[t] = rank")
    found = sim.outputs(case(body, threads=64))["out"]
    assert (found == ((np.arange(BLOCKS) + 1) % 4)[:, None]).all()


def test_a_thread_that_ends_is_not_waited_for(sim: Sim) -> None:
    body = """cluster.sync(); cluster.barrier_arrive(); if (t > 3) return;
      cluster.barrier_wait(); if (t == 3) return; cluster.sync(); *o = 1;"""
    found = run(sim, body)
    assert (found[:, :3] == 1).all()
    assert not (found[:, 3:] == 1).any()


def test_an_accumulating_ring_passes_many_barriers(sim: Sim) -> None:
    found = run(
        sim,
        """other[t] = rank;
        for (int step = 0; step < 50; ++step) {
          cluster.sync();
          const int seen = cluster.map_shared_rank(other, next)[t];
          cluster.sync();
          other[t] = seen;
        }
        *o = other[t];""",
    )
    assert (found == ((np.arange(BLOCKS) + 50) % 4)[:, None]).all()


def test_a_fault_in_another_block_s_memory_has_the_candidate_s_line(sim: Sim) -> None:
    source = "cluster.sync();\n  cluster.map_shared_rank(other, next)[50 + t] = 1;  // beyond"
    broken = case(source)
    found = sim.fault(broken, Status.OUT_OF_BOUNDS)
    assert found.line == line_of(broken.source, "// beyond")
