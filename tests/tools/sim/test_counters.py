"""What the simulator counts: bytes, sectors, barriers, phases."""

import numpy as np
import pytest

from kopt.kernels.counters import ExecutionCounters
from support.sim_run import Sim, SimCase

KERNEL = 'extern "C" __global__ void k'


def _counters(sim: Sim, body: str, blocks: int = 1, block: int = 32) -> ExecutionCounters:
    case = SimCase(
        f"{KERNEL}(const float* in, float* out) {{ const int t = threadIdx.x; {body} }}",
        {"in": np.zeros(4096, np.float32)},
        {"out": np.zeros(4096, np.float32)},
        grid=(blocks, 1, 1),
        block=(block, 1, 1),
    )
    found = sim.execute(case).counters
    assert found is not None
    return found


SECTORS = {  # of the load with an index: how many, and how many without gaps
    "t": (4, 4),
    "t * 8": (32, 4),
    "0": (1, 1),
    "t / 2": (2, 2),
    "31 - t": (4, 4),
    "t + 1": (5, 4),
    "t * 2": (8, 4),
}


@pytest.mark.parametrize("index", SECTORS)
def test_sectors_of_a_warp_wide_load(sim: Sim, index: str) -> None:
    # One program has all loads: the number of blocks, of which the first works, says which is made.
    loads = "".join(f"case {n}: out[t] = in[{one}]; break; " for n, one in enumerate(SECTORS, 1))
    body = f"if (blockIdx.x == 0) switch (gridDim.x) {{ {loads} }}"
    traffic = _counters(sim, body, blocks=list(SECTORS).index(index) + 1).traffic
    found = (traffic["in"].sectors_per_request, traffic["in"].ideal_sectors_per_request)
    assert found == SECTORS[index]
    assert traffic["out"].sectors_per_request == 4


def test_sectors_of_vector_loads_and_loops(sim: Sim) -> None:
    body = """float4 v = ((const float4*)in)[t]; ((float4*)out)[t] = v;
    for (int i = 0; i < 3; ++i) out[1024 + 32 * i + t] = in[1024 + 32 * i + t];"""
    traffic = _counters(sim, body).traffic
    assert traffic["in"].sectors_per_request == (16 + 3 * 4) / 4
    assert traffic["in"].ideal_sectors_per_request == (16 + 3 * 4) / 4
    assert traffic["in"].load_bytes == 32 * 16 + 3 * 128
    assert traffic["out"].store_bytes == 32 * 16 + 3 * 128
    assert traffic["out"].load_bytes == 0


def test_bytes_are_exact_over_all_blocks_and_workers(sim: Sim) -> None:
    for workers in (1, 2, 4):
        body = "const int i = blockIdx.x * 64 + t; if (i < 1000) out[i] = in[i] + in[i ^ 1];"
        counters = _counters(sim.with_(workers=workers), body, blocks=16, block=64)
        assert counters.traffic["in"].load_bytes == 2 * 4000
        assert counters.traffic["out"].store_bytes == 4000


def test_shared_bytes_and_barriers(sim: Sim) -> None:
    body = """__shared__ float s[64]; s[t] = in[t]; __syncthreads();
    float v = s[t] + s[63 - t]; __syncthreads(); s[t] = v; __syncthreads();
    if (blockIdx.x == 0) __syncthreads();
    out[blockIdx.x * 64 + t] = s[t];"""
    counters = _counters(sim, body, blocks=4, block=64)
    assert counters.shared_store_bytes == 4 * 64 * 8
    assert counters.shared_load_bytes == 4 * 64 * 12
    assert counters.barriers_per_block == 3.25


def test_phases_and_accesses_of_a_thread(sim: Sim) -> None:
    body = """float v = in[t] + in[t + 32]; __syncthreads(); v += in[t + 64]; __syncthreads();
    __syncthreads(); out[t] = v;"""
    counters = _counters(sim, body)
    assert counters.load_phases_per_thread == 2
    assert counters.global_accesses_per_thread == 4


def test_other_schedules_count_the_same_bytes(sim: Sim) -> None:
    body = "for (int i = 0; i < 20; ++i) out[blockIdx.x * 64 + t] = in[t + i];"
    counters = [_counters(sim.with_(seed=seed), body, 4, 64) for seed in (0, 5)]
    assert counters[0].traffic["in"].load_bytes == counters[1].traffic["in"].load_bytes == 20480
