"""Random little programs: the simulator finds a race where the CUDA memory model has one.

A kernel follows a script: each step is a barrier for all or one access by one thread. Whether two
accesses are ordered is said here from the rules alone, without stamps: the same thread made both,
or a barrier that both threads met lies between. Most seeds above 100 are of races that went unseen
once.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from kopt.kernels.plan import Argument
from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase

SYNC_WARP, SYNC_BLOCK, SYNC_CLUSTER, LOAD, STORE, ATOMIC = range(6)
GLOBAL, OWN_SHARED, SHARED_OF_FIRST = range(3)
BLOCKS, CLUSTER, THREADS = 4, 2, 64

SOURCE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* script, int* cells, int* out, int steps, int memory) {
  __shared__ int own[2];
  if (threadIdx.x < 2) own[threadIdx.x] = 0;
  const cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  if (memory == 1) cells = own;
  if (memory == 2) cells = cluster.map_shared_rank(own, 0);
  const int me = blockIdx.x * 64 + threadIdx.x;
  int sum = 0;
  for (int i = 0; i < steps; ++i) {
    const int kind = script[3 * i], thread = script[3 * i + 1], cell = script[3 * i + 2];
    if (kind == 0) __syncwarp();
    else if (kind == 1) __syncthreads();
    else if (kind == 2) cluster.sync();
    else if (thread != me) continue;
    else if (kind == 3) sum += cells[cell];
    else if (kind == 4) cells[cell] = i + 1;
    else atomicAdd(&cells[cell], 1000);
  }
  out[me] = sum;
  cluster.sync();
}
"""


@dataclass(frozen=True)
class Step:
    """A barrier for all threads, or an access of one thread of the grid."""

    kind: int
    thread: int = 0
    cell: int = 0


def _draw(random: np.random.Generator) -> tuple[int, list[Step]]:
    """Return a memory and a script for it: few threads, near each other in different ways."""
    block = int(random.integers(BLOCKS))
    near = [block, block, block ^ 1, int(random.integers(BLOCKS))]
    lanes = [0, 1, 31, 32, 63]
    threads = [near[random.integers(4)] * THREADS + lanes[random.integers(5)] for _ in range(3)]
    script: list[Step] = []
    for _ in range(int(random.integers(3, 10))):
        if random.random() < 0.35:
            script.append(Step(int(random.integers(3))))
        else:
            kind = int(random.choice([LOAD, LOAD, STORE, ATOMIC]))
            script.append(Step(kind, threads[random.integers(3)], int(random.integers(2))))
    return int(random.integers(3)), script


def _cell(memory: int, step: Step) -> tuple[int, int]:
    blocks = {GLOBAL: BLOCKS, OWN_SHARED: 1, SHARED_OF_FIRST: CLUSTER}[memory]
    return step.thread // (blocks * THREADS), step.cell


def _least_barrier(first: int, second: int) -> int:
    """Return the smallest barrier that orders two threads; 3 if there is none."""
    for kind, threads in (
        (SYNC_WARP, 32),
        (SYNC_BLOCK, THREADS),
        (SYNC_CLUSTER, CLUSTER * THREADS),
    ):
        if first // threads == second // threads:
            return kind
    return 3


def _has_race(memory: int, script: list[Step]) -> bool:
    for later, b in enumerate(script):
        for earlier, a in enumerate(script[:later]):
            if min(a.kind, b.kind) < LOAD or _cell(memory, a) != _cell(memory, b):
                continue
            harmless = a.kind == b.kind and a.kind in (LOAD, ATOMIC)
            least = _least_barrier(a.thread, b.thread)
            between = [step.kind for step in script[earlier + 1 : later] if step.kind < LOAD]
            if not (harmless or a.thread == b.thread or any(least <= kind for kind in between)):
                return True
    return False


def _case(memory: int, script: list[Step]) -> SimCase:
    steps = np.array([(s.kind, s.thread, s.cell) for s in script], np.int32)
    return SimCase(
        SOURCE,
        inputs={"script": steps},
        outputs={"cells": np.zeros(2, np.int32), "out": np.zeros(BLOCKS * THREADS, np.int32)},
        inout=frozenset({"cells"}),
        scalars=(
            Argument(kind="int32", name="steps", value=len(script)),
            Argument(kind="int32", name="memory", value=memory),
        ),
        grid=(BLOCKS, 1, 1),
        block=(THREADS, 1, 1),
        cluster=(CLUSTER, 1, 1),
    )


@pytest.mark.parametrize(
    "seed",
    [*range(30), 158, 208, 248, 269, 319, 453, 537, 561, 1025, 1058, 1397, 1742, 2535, 3728],
)
def test_a_random_script_has_a_race_or_none_as_the_rules_say(sim: Sim, seed: int) -> None:
    memory, script = _draw(np.random.default_rng(seed))
    expected = Status.DATA_RACE if _has_race(memory, script) else Status.PASSED
    for schedule, workers in ((0, 1), (seed + 1, 2)):
        outcome = sim.with_(seed=schedule, workers=workers).execute(_case(memory, script))
        assert outcome.status is expected, (memory, script, outcome.diagnostics)
