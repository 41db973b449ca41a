"""Random little programs: the simulator finds a race where the CUDA memory model has one.

A kernel follows a script: each step is a barrier for all or one access by one thread. Whether two
accesses are ordered is said here from the rules alone, without stamps: the same thread made both,
or a barrier that both threads met lies between. Most seeds above 100 are of races that went unseen
once.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase, int32

pytestmark = pytest.mark.slow  # random programs

SYNC_WARP, SYNC_BLOCK, SYNC_CLUSTER, LOAD, STORE, ATOMIC = range(6)
GLOBAL, OWN_SHARED, SHARED_OF_FIRST = range(3)
BLOCKS, CLUSTER, THREADS = 4, 2, 64

SOURCE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <class T> __device__ int use(char* place, bool stores, int value) {
  if (stores) *(T*)place = value;
  return stores ? 0 : *(T*)place;
}
extern "C" __global__ void k(const int* script, int* cells, int* out, int steps, int memory,
                             int clear) {
  __shared__ int own[2];
  if (threadIdx.x < 2 && clear) own[threadIdx.x] = 0;
  const cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  if (memory == 1) cells = own;
  if (memory == 2) cells = cluster.map_shared_rank(own, 0);
  const int me = blockIdx.x * 64 + threadIdx.x;
  int sum = 0;
  for (int i = 0; i < steps; ++i) {
    const int kind = script[4 * i], thread = script[4 * i + 1], width = script[4 * i + 3];
    char* place = (char*)cells + script[4 * i + 2];
    if (kind == 0) __syncwarp();
    else if (kind == 1) __syncthreads();
    else if (kind == 2) cluster.sync();
    else if (thread != me) continue;
    else if (kind == 5) atomicAdd((int*)place, 1000);
    else if (width == 4) sum += use<int>(place, kind == 4, i + 1);
    else if (width == 2) sum += use<short>(place, kind == 4, i + 1);
    else sum += use<char>(place, kind == 4, i + 1);
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
    place: int = 0
    """Of the first byte."""
    width: int = 4

    @property
    def bytes(self) -> frozenset[int]:
        """The places that an access touches."""
        return frozenset(range(self.place, self.place + self.width))


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
            script.append(Step(kind, threads[random.integers(3)], 4 * int(random.integers(2))))
    return int(random.integers(3)), script


def _narrow(step: Step, random: np.random.Generator) -> Step:
    """Return a load or store of some of the bytes."""
    width = int(random.choice([1, 2, 4]))
    if step.kind not in (LOAD, STORE):
        return step
    return replace(step, place=int(random.integers(8 // width)) * width, width=width)


def _may_touch(memory: int, a: Step, b: Step) -> bool:
    threads = {GLOBAL: BLOCKS, OWN_SHARED: 1, SHARED_OF_FIRST: CLUSTER}[memory] * THREADS
    return a.thread // threads == b.thread // threads and bool(a.bytes & b.bytes)


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
            if min(a.kind, b.kind) < LOAD or not _may_touch(memory, a, b):
                continue
            harmless = a.kind == b.kind and a.kind in (LOAD, ATOMIC)
            least = _least_barrier(a.thread, b.thread)
            between = [step.kind for step in script[earlier + 1 : later] if step.kind < LOAD]
            if not (harmless or a.thread == b.thread or any(least <= kind for kind in between)):
                return True
    return False


def _reads_unwritten(memory: int, script: list[Step]) -> bool:
    """Tell it of a script without a race, whose accesses to a place have one order."""
    for later, b in enumerate(script):
        stores = [a for a in script[:later] if a.kind >= STORE and _may_touch(memory, a, b)]
        written = frozenset[int]().union(*(a.bytes for a in stores))
        if b.kind in (LOAD, ATOMIC) and not b.bytes <= written:
            return True
    return False


def _case(memory: int, script: list[Step], *, clear: bool) -> SimCase:
    steps = np.array([(s.kind, s.thread, s.place, s.width) for s in script], np.int32)
    numbers = {"steps": len(script), "memory": memory, "clear": int(clear)}
    return SimCase(
        SOURCE,
        inputs={"script": steps},
        outputs={"cells": np.zeros(2, np.int32), "out": np.zeros(BLOCKS * THREADS, np.int32)},
        inout=frozenset({"cells"}),
        scalars=tuple(int32(name, value) for name, value in numbers.items()),
        grid=(BLOCKS, 1, 1),
        block=(THREADS, 1, 1),
        cluster=(CLUSTER, 1, 1),
    )


def _statuses(sim: Sim, seed: int, case: SimCase) -> set[Status]:
    """Return how `case` ends in the natural order, and in a random one."""
    return {
        sim.with_(seed=schedule, workers=workers).execute(case).status
        for schedule, workers in ((0, 1), (seed + 1, 2))
    }


@pytest.mark.parametrize(
    "seed",
    [*range(30), 158, 208, 248, 269, 319, 453, 537, 561, 1025, 1058, 1397, 1742, 2535, 3728],
)
def test_a_random_script_has_a_race_or_none_as_the_rules_say(sim: Sim, seed: int) -> None:
    memory, script = _draw(np.random.default_rng(seed))
    expected = Status.DATA_RACE if _has_race(memory, script) else Status.PASSED
    assert _statuses(sim, seed, _case(memory, script, clear=True)) == {expected}, script


@pytest.mark.parametrize("seed", range(40))
def test_bytes_of_shared_memory_are_told_apart(sim: Sim, seed: int) -> None:
    random = np.random.default_rng(seed)
    _, wide = _draw(random)
    script = [_narrow(step, random) for step in wide]
    memory, clear = (OWN_SHARED, SHARED_OF_FIRST)[seed % 2], bool(random.random() < 0.7)
    expected = Status.PASSED
    if _has_race(memory, script):
        expected = Status.DATA_RACE
    elif not clear and _reads_unwritten(memory, script):
        expected = Status.UNINITIALIZED_READ
    assert _statuses(sim, seed, _case(memory, script, clear=clear)) == {expected}, script
