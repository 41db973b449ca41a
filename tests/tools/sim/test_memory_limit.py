"""Kernels that take gigabytes on the simulator: stopped, and told as their own fault."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.plan import Scratch
from kopt.kernels.status import Status
from kopt.tools.sandbox.ladder import available_level
from kopt.tools.sim import memory_limit
from support.sandbox_level import LEVELS, open_level
from support.sim_run import Sim, SimCase

STACKS = """
extern "C" __global__ void k(int* out) {
  volatile char local[100 << 10];
  for (int i = 0; i < sizeof local; i += 1024) local[i] = i;
  out[blockIdx.x * blockDim.x + threadIdx.x] = local[threadIdx.x];
}
"""
"""100 KiB of stack in each of 16,384 resident threads."""
COPIES = """
#include <kopt/cp_async.cuh>
extern "C" __global__ void k(const int* in, int* out) {
  __shared__ int row[4];
  for (long i = 0; i < 1l << 40; ++i) kopt::cp_async<16>(row, in);
  out[threadIdx.x] = row[0];
}
"""
"""Copies that are started for ever and never waited for."""
BASE_BYTES = 128 << 20


def stacks() -> SimCase:
    """Return the case in which threads fill their stacks."""
    out = np.zeros(16 * 1024, np.int32)
    block, grid = (1024, 1, 1), (16, 1, 1)
    return SimCase(STACKS, outputs={"out": out}, grid=grid, block=block, cooperative=True)


def copies() -> SimCase:
    """Return the case in which copies pile up."""
    return SimCase(
        COPIES,
        inputs={"in": np.zeros(4, np.int32)},
        outputs={"out": np.zeros(32, np.int32)},
    )


@pytest.fixture(params=LEVELS)
def sim_at_level(
    request: pytest.FixtureRequest, settings: Settings, sim: Sim, tmp_path: Path
) -> Sim:
    """Return the simulator at each level that this machine has."""
    open_level(request.param, settings, tmp_path)
    forced = replace(sim.settings, sandbox=request.param)
    assert available_level(forced) == request.param
    return Sim(forced)


@pytest.mark.slow  # fills memory up to the limit at each level
@pytest.mark.parametrize("case", [stacks(), copies()], ids=["stacks", "copies"])
def test_gigabytes_are_the_kernels_own_fault(
    case: SimCase, sim_at_level: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_limit, "_BASE_BYTES", BASE_BYTES)
    outcome = sim_at_level.with_(timeout_s=60.0).execute(case)
    assert outcome.status is Status.CRASH
    (told,) = outcome.diagnostics
    assert "GiB on the simulator and was stopped" in told.message
    assert told.hint is not None and "local arrays" in told.hint


def _limit(workers: int = 2, together: bool = False, **case: Any) -> int:
    """Return what a kernel may hold beyond its buffers and the runtime's own."""
    case = {"outputs": {"out": np.zeros(1, np.int8)}, "block": (32, 1, 1), **case}
    program = SimCase(STACKS, **case).program
    base = (1 << 30) + 25  # an element that can be written, and its cell of 24 bytes
    return memory_limit.memory_limit_bytes(program, workers, together) - base


def test_limit_grows_with_what_a_kernel_may_touch() -> None:
    few, many = (
        SimCase(STACKS, outputs={"out": np.zeros(n, np.int32)}).program for n in (32, 1 << 20)
    )
    growth = memory_limit.memory_limit_bytes(many, 2) - memory_limit.memory_limit_bytes(few, 2)
    assert growth == 25 * 4 * ((1 << 20) - 32)
    scratch = (Scratch(name="tmp", dtype="float32", shape=(3, 1000)),)
    assert _limit(scratch=scratch) - _limit() == 25 * 4 * 3000
    assert _limit(inputs={"in": np.zeros(1000, np.int32)}) - _limit() == 4000


def test_limit_counts_the_stacks_of_blocks_that_are_resident_at_once() -> None:
    block = 32 * (32 << 10) + (4 << 20)
    assert _limit(workers=3, grid=(8, 1, 1)) == 3 * block
    assert _limit(workers=3, grid=(8, 1, 1), cluster=(4, 1, 1)) == 12 * block
    assert _limit(workers=3, grid=(8, 5, 1), cooperative=True) == 40 * block
    assert _limit(workers=3, grid=(8, 5, 1), together=True) == 40 * block
    assert _limit(workers=3, grid=(2, 1, 1), together=True) == 3 * block
    assert _limit(grid=(1 << 20, 1, 1), together=True) == (1 << 16) // 32 * block


def test_limit_is_told_in_gib() -> None:
    assert "more than 1.5 GiB" in memory_limit.memory_fault(3 << 29).message
