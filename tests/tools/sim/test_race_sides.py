"""Both accesses of a race are told: the one that is stopped at and the one before it."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase, line_of

BLOCK_SUM = """
extern "C" __global__ void k(float* out) {
  __shared__ float sums[8];
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = threadIdx.x;  // stored
  float total = 0;
  for (int warp = 0; warp < 8; ++warp) total += sums[warp];  // loaded
  out[blockIdx.x * 256 + threadIdx.x] = total;
}
"""
NEXT_USE = """
extern "C" __global__ void k(float* out) {
  __shared__ float tile[256];
  float total = 0;
  for (int i = 0; i < 4; ++i) {
    tile[threadIdx.x] = i;  // stored
    __syncthreads();
    total += tile[(threadIdx.x + 33) % 256];  // loaded
  }
  out[blockIdx.x * 256 + threadIdx.x] = total;
}
"""
BETWEEN_BLOCKS = """
extern "C" __global__ void k(float* out) {
  out[blockIdx.x * 256 + threadIdx.x] = 1;  // stored
  if (threadIdx.x == 9 && out[(blockIdx.x ^ 1) * 256 + 9] < 0)  // loaded
    out[blockIdx.x * 256 + 10] = 1;
}
"""
ONE_LINE = """
extern "C" __global__ void k(float* out) {
  out[threadIdx.x] = blockIdx.x;  // stored
}
"""


def _case(source: str) -> SimCase:
    outputs = {"out": np.zeros(512, np.float32)}
    return SimCase(source, outputs=outputs, grid=(2, 1, 1), block=(256, 1, 1))


@pytest.mark.parametrize("seed", [0, 7, 11])
@pytest.mark.parametrize("source", first_quick([BLOCK_SUM, NEXT_USE, BETWEEN_BLOCKS], 1))
def test_store_and_load_are_both_told(sim: Sim, source: str, seed: int) -> None:
    outcome = sim.with_(seed=seed, workers=2).execute(_case(source))
    assert outcome.status is Status.DATA_RACE
    later, earlier = outcome.diagnostics
    assert {later.line, earlier.line} == {
        line_of(source, "// stored"),
        line_of(source, "// loaded"),
    }
    assert earlier.severity == "note"
    kinds = {"store" in later.message.partition(" of ")[0], "store" in earlier.message}
    assert kinds == {True, False}
    assert earlier.excerpt is not None and "//" in earlier.excerpt


def test_line_that_races_with_itself_is_told_with_both_blocks(sim: Sim) -> None:
    outcome = sim.with_(workers=2).execute(_case(ONE_LINE))
    later, earlier = outcome.diagnostics
    assert later.line == earlier.line == line_of(ONE_LINE, "// stored")
    assert "(block (1, 0, 0)" in later.message
    assert "4-byte store, before it (block (0, 0, 0), thread (0, 0, 0))" in earlier.message
