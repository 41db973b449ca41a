"""The simulator's short ways for common accesses judge exactly as its full checks do.

Random little programs with planted races, misplaced barriers and wild accesses run twice: as always
and with each access checked in full. Status, diagnostics, outputs and counters must be the same.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest
from kopt.tools.sim import device
from kopt.tools.sim.job_file import JobFile, RunMode, write_job
from kopt.tools.sim.program_facts import SimProgram
from support.sim_run import Sim, SimCase, int32

pytestmark = pytest.mark.slow  # every program twice
BLOCKS, THREADS = 4, 64
NO_LINE = 1
"""A return address that no access has: where lines are rechecked, no access takes a short way."""

# All threads come to the barriers 0 to 8, which SOURCE has.
SYNC_BLOCK, ARRIVE, WAIT, ONE_BRANCH, LEAVE = 0, 6, 8, 9, 10
LOAD, VOLATILE_LOAD, STORE, VOLATILE_STORE, ADD, FENCED_ADD, COPY, LAND, MOVE = range(11, 20)
OWN, DYNAMIC, OF_FIRST, GLOBAL = range(4)
ACCESSES = [LOAD] * 6 + [STORE] * 5 + [VOLATILE_STORE, ADD] + [*range(VOLATILE_LOAD, MOVE + 1)]

SOURCE = """#include <cooperative_groups.h>
#include <kopt/cp_async.cuh>
#include <kopt/mbarrier.cuh>
#include <string.h>
namespace cg = cooperative_groups;
template <class T> __device__ int use(char* place, int kind, T value) {
  if (kind == 13) *(T*)place = value;
  if (kind == 14) *(volatile T*)place = value;
  return kind == 11 ? *(T*)place : kind == 12 ? *(volatile T*)place : 0;
}
extern "C" __global__ void k(const int* script, char* cells, int* out, int first, int end,
                             int clear) {
  __shared__ alignas(16) char own[32];
  __shared__ alignas(16) char other[32];
  __shared__ kopt::mbarrier_t met;
  extern __shared__ alignas(16) char dynamic[];
  const cg::cluster_group cluster = cg::this_cluster();
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int me = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x == 0) kopt::mbarrier_init(&met, 64);
  if (threadIdx.x < 32) other[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 32 && clear) own[threadIdx.x] = dynamic[threadIdx.x] = 0;
  cluster.sync();
  char* const memories[] = {own, dynamic, cluster.map_shared_rank(own, 0), cells};
  unsigned sum = 0, phase = 0;
  for (int i = first; i < end; ++i) {
    const int kind = script[5 * i], thread = script[5 * i + 1], width = script[5 * i + 4];
    char* const place = memories[script[5 * i + 2]] + script[5 * i + 3];
    if (kind == 0) __syncthreads();
    else if (kind == 1) __syncwarp();
    else if (kind == 2) __syncwarp(threadIdx.x % 32 < 16 ? 0xffff : 0xffff0000);
    else if (kind == 3) tile.sync();
    else if (kind == 4) { if (threadIdx.x % 3 == 0) cg::coalesced_threads().sync(); }
    else if (kind == 5) cluster.sync();
    else if (kind == 6) cluster.barrier_arrive();
    else if (kind == 7) {
      kopt::mbarrier_arrive(&met);
      kopt::mbarrier_wait_parity(&met, phase++ % 2);
    }
    else if (kind == 8) cluster.barrier_wait();
    else if (kind == 9) { if (threadIdx.x < 32) __syncthreads(); }
    else if (thread != me) continue;
    else if (kind == 10) return;
    else if (kind == 15) sum += ADD;
    else if (kind == 16) { FENCE; sum += ADD; }
    else if (kind == 17) kopt::cp_async<4>(place, script + 4);
    else if (kind == 18) { kopt::cp_async_commit_group(); kopt::cp_async_wait_group<0>(); }
    else if (kind == 19) { if (width < 4) memcpy(place, other, 12); else memcpy(other, place, 12); }
    else if (width == 16 && kind > 12) *(int4*)place = make_int4(i % 2, 1, 0, 1);
    else if (width == 16) { int4 v = *(int4*)place; sum += v.x + v.w; }
    else if (width == 8) sum += use<long long>(place, kind, i % 2);
    else if (width == 4) sum += use<int>(place, kind, i % 2);
    else if (width == 2) sum += use<short>(place, kind, i % 2);
    else sum += use<char>(place, kind, i % 2);
  }
  out[me] += sum;
  cluster.sync();
}
"""
# The blocks of a source with atomic operations run in one process, others in two.
PLAIN = SOURCE.replace("FENCE", "__syncwarp(1u << threadIdx.x % 32)").replace("ADD", "*(int*)place")
ATOMIC = SOURCE.replace("FENCE", "__threadfence()").replace("ADD", "atomicAdd((int*)place, 9)")


@dataclass(frozen=True)
class Step:
    """A barrier, or what one thread of the grid does."""

    kind: int
    thread: int = 0
    memory: int = OWN
    place: int = 0
    """The first byte is at this offset."""
    width: int = 4


def _draw(random: np.random.Generator, memory: int) -> list[Step]:
    """Return a script: few threads, near each other in different ways, on the same 16 bytes."""
    block = int(random.integers(BLOCKS))
    near = [block, block, block, block ^ 1]
    lanes = [0, 1, 5, 17, 31, 32, 63]
    threads = [near[random.integers(4)] * THREADS + lanes[random.integers(7)] for _ in range(3)]
    script: list[Step] = []
    for _ in range(int(random.integers(4, 14))):
        chance = random.random()
        if chance < 0.35:
            script.append(Step(int(random.integers(8))))
            if script[-1].kind == ARRIVE:
                kind = int(random.choice([LOAD, STORE]))
                script += [Step(kind, threads[random.integers(3)], memory), Step(WAIT)]
            continue
        if chance < 0.37:
            script.append(Step(int(random.choice([LEAVE, ONE_BRANCH])), threads[0]))
            continue
        kind = int(random.choice(ACCESSES))
        width = 4 if kind in (ADD, FENCED_ADD, COPY) else int(random.choice([1, 2, 4, 4, 4, 8, 16]))
        if kind in (VOLATILE_LOAD, VOLATILE_STORE):
            width = min(width, 8)
        place = int(random.choice([0, 0, 4, 10])) // width * width
        if chance > 0.99:
            place += int(random.choice([1, 33 - width, 32, -1, -300, 1 << 20]))
        script.append(Step(kind, threads[random.integers(3)], memory, place, width))
    return script


def _case(
    script: list[Step],
    cut: int | None = None,
    *,
    cluster: int = 2,
    atomics: bool = False,
    clear: bool = True,
) -> SimCase:
    """Return a script; its part from `cut` on is a launch with more dynamic shared memory."""
    end = len(script)
    cut = end if cut is None else cut
    launches = [
        Launch(
            kernel="k",
            grid=(BLOCKS, 1, 1),
            block=(THREADS, 1, 1),
            cluster=(cluster, 1, 1),
            dynamic_smem_bytes=smem,
            arguments=(
                *(Argument(kind="tensor", name=name) for name in ("script", "cells", "out")),
                *map(int32, ("first", "end", "clear"), (*part, int(clear))),
            ),
        )
        for part, smem in (((0, cut), 32), ((cut, end), 64))
        if part != (end, end)
    ]
    steps = [(s.kind, s.thread, s.memory, s.place, s.width) for s in script]
    cells, out = np.zeros(32, np.int8), np.zeros(BLOCKS * THREADS, np.int32)
    return SimCase(
        ATOMIC if atomics else PLAIN,
        inputs={"script": np.array(steps, np.int32)},
        outputs={"cells": cells, "out": out},
        inout=frozenset({"cells", "out"}),
        launches=tuple(launches),
    )


def _drawn(seed: int) -> SimCase:
    random = np.random.default_rng(seed)
    atomics = bool(random.random() < 0.6)
    script = _draw(random, int(random.choice([OWN, OWN, DYNAMIC, OF_FIRST, *[GLOBAL] * atomics])))
    cut = int(random.integers(1, len(script))) if random.random() < 0.3 else None
    cluster, clear = int(random.choice([1, 2])), bool(random.random() < 0.7)
    return _case(script, cut, cluster=cluster, atomics=atomics, clear=clear)


def _check_in_full(
    request: ExecutionRequest, program: SimProgram, folder: Path, mode: RunMode
) -> JobFile:
    mode = replace(mode, rechecked=(*mode.rechecked, NO_LINE))
    return write_job(request, program, folder, mode)


def _told(outcome: ExecutionOutcome) -> tuple[Any, ...]:
    outputs = {name: array.tobytes() for name, array in outcome.outputs.items()}
    return outcome.status, outcome.diagnostics, outputs, outcome.counters, outcome.access_lines


def _judged(sim: Sim, case: SimCase, monkeypatch: pytest.MonkeyPatch) -> Status:
    """Return how `case` ends, the same with and without short ways."""
    short = sim.execute(case)
    monkeypatch.setattr(device, "write_job", _check_in_full)
    assert _told(short) == _told(sim.execute(case))
    return short.status


@pytest.mark.parametrize("seed", [*range(32), 37, 43, 47, 53, 58, 84, 103, 110])
def test_a_short_way_judges_as_the_full_check_does(
    sim: Sim, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _judged(sim.with_(seed=seed // 2 if seed % 2 else 0), _drawn(seed), monkeypatch)


HAND_MADE = {
    "a block barrier orders no reader of another block": (
        [
            Step(ARRIVE),
            *(Step(LOAD, THREADS, OF_FIRST), Step(WAIT), Step(LOAD, 0, OF_FIRST)),
            *(Step(SYNC_BLOCK), Step(STORE, 0, OF_FIRST)),
        ],
        Status.DATA_RACE,
    ),
    "the last of two readers is not alone": (
        [Step(LOAD, 0), Step(LOAD, 32), Step(STORE, 32)],
        Status.DATA_RACE,
    ),
    "a store of another value, which one of the first value follows": (
        [Step(STORE, 0), Step(STORE, 1), Step(STORE, 1)],
        Status.DATA_RACE,
    ),
    "a copy beyond the end": ([Step(MOVE, 0, OWN, 24, 2)], Status.OUT_OF_BOUNDS),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_what_a_short_way_must_leave_to_the_full_check(
    sim: Sim, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, status = HAND_MADE[name]
    assert _judged(sim, _case(script), monkeypatch) is status


def test_what_an_earlier_block_stored_is_nothing_to_read(
    sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [Step(STORE, 0), Step(SYNC_BLOCK), Step(LOAD, THREADS)]
    case = _case(script, cluster=1, clear=False)
    assert _judged(sim, case, monkeypatch) is Status.UNINITIALIZED_READ
