"""Flags: what lies behind one is read behind a fence; a volatile load may give what was before."""

import numpy as np
import pytest

from kopt.kernels.plan import Scratch
from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase, int32

KERNEL = 'extern "C" __global__ void k'

WAIT = (
    KERNEL
    + """(int* out, unsigned* count, int which) {
      if (blockIdx.x == 1) { out[1] = 7; __threadfence(); POST; return; }
      while (LOAD == 0) {}
      FENCE
      out[0] = out[1];  // read
    }"""
)
FENCES = ("", "__threadfence();", "__syncthreads();", "__syncwarp(1);", "__threadfence_block();")
VOLATILE, ATOMIC = "*(volatile unsigned*)count", "atomicAdd(count, 0u)"


@pytest.mark.parametrize(
    ("load", "fence", "status"),
    [
        (VOLATILE, "__threadfence();", Status.PASSED),
        (VOLATILE, "", Status.DATA_RACE),
        (VOLATILE, "__syncthreads();", Status.DATA_RACE),
        (ATOMIC, "__threadfence();", Status.PASSED),
        (ATOMIC, "__syncthreads();", Status.PASSED),
        (ATOMIC, "__syncwarp(1);", Status.PASSED),
        (ATOMIC, "", Status.DATA_RACE),
        (ATOMIC, "__threadfence_block();", Status.DATA_RACE),
    ],
)
@pytest.mark.parametrize("post", ["atomicExch(count, 1u)", "*(volatile unsigned*)count = 1"])
def test_what_a_flag_stands_for_is_read_behind_a_fence(
    sim: Sim, load: str, fence: str, status: Status, post: str
) -> None:
    # One program for each load and post: its argument names the fence.
    fences = " ".join(f"if (which == {n}) {{ {one} }}" for n, one in enumerate(FENCES))
    case = SimCase(
        WAIT.replace("POST", post).replace("LOAD", load).replace("FENCE", fences),
        outputs={"out": np.zeros(2, np.int32)},
        scalars=(int32("which", FENCES.index(fence)),),
        scratch=(Scratch(name="count", dtype="uint32", shape=(1,), init="zero"),),
        grid=(2, 1, 1),
        block=(1, 1, 1),
        cooperative=True,
    )
    outcome = sim.execute(case)
    assert outcome.status is status, outcome.diagnostics
    if status is Status.PASSED:
        assert outcome.outputs["out"].tolist() == [7, 7]


def test_an_unordered_volatile_load_gives_the_old_value_once(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) {
      __shared__ volatile int s[2];
      if (threadIdx.x < 2) s[threadIdx.x] = 3;
      __syncthreads();
      if (threadIdx.x == 0) { s[0] = 5; s[1] = 6; }
      if (threadIdx.x == 40) { out[0] = s[0]; out[1] = s[0]; out[2] = s[1]; }
      __syncthreads();
      if (threadIdx.x == 41) out[3] = s[0];
    }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(4, np.int32)}, block=(64, 1, 1))
    assert sim.outputs(case)["out"].tolist() == [3, 5, 3, 5]
