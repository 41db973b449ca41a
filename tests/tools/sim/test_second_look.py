"""Findings that a second run clears, and such that it leaves as they are."""

import numpy as np
import pytest

from kopt.kernels.plan import Scratch
from kopt.kernels.status import Status
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase

KERNEL = 'extern "C" __global__ void k'


@pytest.mark.parametrize(
    ("kept", "status"),
    first_quick(
        [
            ("lane < 4 ? t : 0", Status.PASSED),  # g++ loads where the value is used
            ("(lane < 4) * t", Status.PASSED),  # the load is made, and another run tells
            ("lane < 5 ? t : 0", Status.UNINITIALIZED_READ),
            ("t > 0 ? lane : -lane", Status.UNINITIALIZED_READ),
            ("max(t, 0)", Status.UNINITIALIZED_READ),
        ],
        3,
    ),
)
def test_unwritten_shared_memory_is_judged_by_use(sim: Sim, kept: str, status: Status) -> None:
    source = (
        KERNEL + "(int* out) { __shared__ int s[32]; const int lane = threadIdx.x;"
        " if (lane < 4) s[lane] = lane + 1; __syncthreads();"
        f" const int t = s[lane]; out[lane] = {kept}; }}"
    )
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)})
    assert sim.execute(case).status is status


def test_unwritten_global_memory_is_a_fault_also_unused(sim: Sim) -> None:
    source = (
        KERNEL + "(int* out, int* s) { const int lane = threadIdx.x; if (lane < 4) s[lane] = 1;"
        " __syncthreads(); out[lane] = (lane < 4) * s[lane]; }"
    )
    out, scratch = {"out": np.zeros(32, np.int32)}, Scratch(name="s", dtype="int32", shape=(32,))
    found = sim.fault(SimCase(source, outputs=out, scratch=(scratch,)), Status.UNINITIALIZED_READ)
    assert "`s` at byte 16 of 128" in found.message


@pytest.mark.slow  # a program for each
@pytest.mark.parametrize(
    ("update", "status"),
    [
        ("int old = *p, seen; do { seen = old; old = atomicCAS(p, seen, seen | v); }"
         " while (old != seen);", Status.PASSED),
        ("if (*p < v) atomicMax(p, v);", Status.PASSED),
        ("if (*p == 0) atomicAdd(p, v);", Status.DATA_RACE),
        ("atomicMax(p, v); out[1] = *p;", Status.DATA_RACE),
        ("const int old = *p; out[1] = old; atomicMax(p, v);", Status.DATA_RACE),
        ("if (*p < v) *p = v;", Status.DATA_RACE),
    ],
)  # fmt: skip
def test_a_load_that_an_atomic_checks_again_is_no_race(
    sim: Sim, update: str, status: Status
) -> None:
    source = (
        KERNEL + "(int* out) { __shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();"
        f" {{ int* p = &s; const int v = 1 << (threadIdx.x % 8); {update} }} __syncthreads();"
        " if (threadIdx.x == 0) out[0] = s; }"
    )
    case = SimCase(source, outputs={"out": np.zeros(2, np.int32)}, block=(64, 1, 1))
    assert sim.execute(case).status is status


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_blocks_may_wait_for_any_other(sim: Sim, seed: int) -> None:
    source = (
        KERNEL + "(volatile int* flag) { const int next = (blockIdx.x + 1) % gridDim.x;"
        " if (blockIdx.x == gridDim.x - 1) { flag[blockIdx.x] = 1; return; }"
        " while (flag[next] == 0) {} __threadfence(); flag[blockIdx.x] = flag[next] + 1; }"
    )
    case = SimCase(
        source,
        outputs={"flag": np.zeros(6, np.int32)},
        inout=frozenset({"flag"}),
        grid=(6, 1, 1),
        block=(1, 1, 1),
    )
    assert sim.with_(seed=seed).outputs(case)["flag"].tolist() == [6, 5, 4, 3, 2, 1]
