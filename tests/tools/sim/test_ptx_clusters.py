"""Blocks of a cluster in hand-written PTX: copies to all of them, arrivals at their barriers."""

from dataclasses import replace

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.pipeline_cases import WORDS, X
from support.sim_run import Sim, SimCase

pytestmark = pytest.mark.slow  # a program for each

# Each of two blocks loads one half of every tile for both; both add 1 to all of it.
SHARED_TILES = (
    WORDS
    + """
__device__ unsigned rank_of_block() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release;\\nbarrier.cluster.wait.acquire;"
               ::: "memory");
}
__device__ void arrive_at(u64* barrier, unsigned rank) {
  asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
               " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}"
               :: "r"(at(barrier)), "r"(rank) : "memory");
}
__device__ void copy_to_both(void* to, const void* from, unsigned bytes, u64* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1], %2, [%3], %4;"
               :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(barrier)), "h"(MASK) : "memory");
}
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(128) float stages[2][64];
  __shared__ u64 full[2], empty[2];
  const unsigned rank = rank_of_block();
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) { make(full + s, 1); make(empty + s, 2); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet_cluster();  // begin
  if (threadIdx.x < 32) {
    for (int step = 0; step < 16 && threadIdx.x == 0; ++step) {
      const int stage = step % 2;
      while (!passed(empty + stage, step / 2 % 2 ^ 1)) {}
      expect(full + stage, 256);
      copy_to_both(stages[stage] + 32 * rank, in + 64 * step + 32 * rank, 128, full + stage);
    }
  } else {
    for (int step = 0; step < 16; ++step) {
      const int stage = step % 2, t = threadIdx.x % 32;
      while (!passed(full + stage, step / 2 % 2)) {}
      const float a = stages[stage][t], b = stages[stage][63 - t];
      fence();
      __syncwarp();
      if (t < 2) arrive_at(empty + stage, t);  // both
      out[1024 * rank + 64 * step + t] = a + 1;
      out[1024 * rank + 64 * step + 63 - t] = b + 1;
    }
  }
  __syncthreads();
  meet_cluster();  // end
}"""
).replace("MASK", "(unsigned short)3")


def _case(source: str) -> SimCase:
    return SimCase(
        source,
        inputs={"in": X},
        outputs={"out": np.zeros(2048, np.float32)},
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
        block=(64, 1, 1),
    )


def test_copies_to_both_blocks_give_every_element(sim: Sim) -> None:
    for seed in range(4):
        found = sim.with_(seed=seed).outputs(_case(SHARED_TILES))["out"]
        np.testing.assert_array_equal(found, np.concatenate([X + 1, X + 1]))


@pytest.mark.parametrize(
    ("right", "wrong", "statuses"),
    [
        ("make(empty + s, 2)", "make(empty + s, 1)", {Status.DATA_RACE, Status.BARRIER_DIVERGENCE}),
        ("if (t < 2) arrive_at", "if (t < 1) arrive_at", {Status.BARRIER_DIVERGENCE}),
        (
            "meet_cluster();  // begin",
            "__syncthreads();",
            {Status.DATA_RACE, Status.UNINITIALIZED_READ},
        ),
        ("      __syncwarp();\n", "", {Status.DATA_RACE}),
        ("expect(full + stage, 256)", "expect(full + stage, 128)", {Status.DATA_RACE}),
        ("(unsigned short)3", "(unsigned short)7", {Status.OUT_OF_BOUNDS}),
        ("meet_cluster();  // end", "", {Status.DATA_RACE}),
    ],
    ids=["arrivals", "one", "begin", "warp", "bytes", "mask", "end"],
)
def test_mistake_between_blocks_is_found(
    sim: Sim, right: str, wrong: str, statuses: set[Status]
) -> None:
    source = SHARED_TILES.replace(right, wrong)
    assert source != SHARED_TILES
    found = {sim.with_(seed=seed).execute(_case(source)).status for seed in range(4)}
    assert found & statuses, found


LOADER = "    for (int step = 0; step < 16 && threadIdx.x == 0; ++step) {\n"
WAIT = '    asm volatile("griddepcontrol.wait;" ::: "memory");\n'


def test_who_waits_for_the_launch_before_may_copy_for_blocks_that_have_not(sim: Sim) -> None:
    source = SHARED_TILES.replace(LOADER, WAIT + LOADER)
    assert source != SHARED_TILES
    for seed in range(4):
        found = sim.with_(seed=seed).outputs(replace(_case(source), pdl=True))["out"]
        np.testing.assert_array_equal(found, np.concatenate([X + 1, X + 1]))


@pytest.mark.parametrize("rank", [0, 1])
def test_copies_of_a_block_that_has_not_waited_are_found(sim: Sim, rank: int) -> None:
    source = SHARED_TILES.replace(LOADER, f"    if (rank == {rank}) {WAIT.strip()}\n{LOADER}")
    assert sim.execute(replace(_case(source), pdl=True)).status is Status.DATA_RACE


# The loader of each block, thread 0, does as it is told; the second warp may take the tile.
ONE_TILE = (
    SHARED_TILES[: SHARED_TILES.index('extern "C"')]
    + """
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(128) float stage[64];
  __shared__ u64 full;
  __shared__ float taken;
  const unsigned rank = rank_of_block();
  if (threadIdx.x == 0) {
    make(&full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet_cluster();
  if (threadIdx.x == 0) {
    if (rank == 0) { FIRST } else { SECOND }
  }
  if (threadIdx.x >= 32 && (TAKES)) {
    while (!passed(&full, 0)) {}
    const float a = stage[threadIdx.x % 32];
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[64 * rank + threadIdx.x % 32] = a;
  }
  meet_cluster();
}"""
)


def _tile(first: str, second: str, takes: str) -> SimCase:
    source = ONE_TILE.replace("FIRST", first).replace("SECOND", second).replace("TAKES", takes)
    return replace(_case(source), pdl=True)


def test_a_copy_for_another_block_that_has_waited_itself_is_found(sim: Sim) -> None:
    copy = "copy_to_both(stage, in, 256, &full);"
    case = _tile(f"{WAIT} expect(&full, 256);", copy, "rank == 0")
    case = replace(case, source=case.source.replace("(unsigned short)3", "(unsigned short)1"))
    found = {sim.with_(seed=seed).execute(case).status for seed in range(4)}
    assert found == {Status.DATA_RACE}


def test_who_tried_in_vain_for_a_copy_comes_not_after_the_launch_before(sim: Sim) -> None:
    tries = "for (int i = 0; i < 3 && !passed(&full, 0); ++i) {}"
    reads = "const float v = in[5]; *(volatile float*)&taken = v; expect(&full, 256);"
    copy = f"{WAIT} expect(&full, 256); copy_to_both(stage, in, 256, &full);"
    case = _tile(tries + reads, copy, "true")
    found = {sim.with_(seed=seed).execute(case).status for seed in range(8)}
    assert found == {Status.DATA_RACE}
