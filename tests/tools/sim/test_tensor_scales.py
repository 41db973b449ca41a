"""tcgen05.mma with scales, and tcgen05.cp, give on the simulator what the PTX ISA says."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from support.cuda_sources import assert_nvcc_takes
from support.sim_run import Sim, SimCase
from support.tensor_kernels import AFTER, ALLOC, FREE, PROXY, WAIT_LOADS, WORDS
from support.tensor_scaled import COPY_ROWS, SCALED_ROWS, scaled_case, scaled_results

pytestmark = pytest.mark.slow  # dozens of products are compiled by g++ and by nvcc


def test_products_scale_blocks_of_their_factors_as_the_isa_says(sim: Sim) -> None:
    out = sim.with_(timeout_s=60).outputs(scaled_case(SCALED_ROWS))["out"]
    for row, found in zip(SCALED_ROWS, scaled_results(SCALED_ROWS, out), strict=True):
        np.testing.assert_array_equal(found, row.expected, row.form.name)


def test_copies_bring_rows_to_the_lanes_that_the_isa_says(sim: Sim) -> None:
    out = sim.with_(timeout_s=60).outputs(scaled_case(COPY_ROWS))["out"]
    for row, found in zip(COPY_ROWS, scaled_results(COPY_ROWS, out), strict=True):
        np.testing.assert_array_equal(found, row.expected, row.name)


def test_nvcc_takes_every_row(settings: Settings, tmp_path: Path) -> None:
    case = scaled_case((*SCALED_ROWS, *COPY_ROWS))
    assert_nvcc_takes(case.source, "sm_100a", tmp_path, settings)


COPY_A = "copy(d + 32, rows_of_16(scales_a));"
COPY_B = "copy(d + 36, rows_of_16(scales_b));"
# Ones of e4m3, wherever they lie; scales of ue8m0 that double A.
KERNEL = (
    WORDS
    + f"""
constexpr u32 COLUMNS = 64, E4M3_128x8 = 1u << 27 | 1u << 23 | 1u << 17;
__device__ u64 rows_of_16(const void* p) {{
  return (at_shared(p) & 0x3ffff) >> 4 | 8ull << 32 | 1ull << 46;
}}
__device__ u64 rows_of_32(const void* p) {{ return rows_of_16(p) + (8ull << 32) + (8ull << 16); }}
__device__ void copy(u32 to, u64 rows) {{
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(rows) : "memory");
}}
extern "C" __global__ void k(float* out) {{
  __shared__ alignas(128) unsigned char a[128 * 32], b[8 * 32], scales_a[512], scales_b[512];
  __shared__ u32 place;
  __shared__ u64 bar;
  const int t = threadIdx.x, warp = t / 32;
  if (t == 0) init_barrier(&bar, 1);
  for (int i = t; i < 128 * 32; i += 128) a[i] = 0x38;
  for (int i = t; i < 8 * 32; i += 128) b[i] = 0x38;
  for (int i = t; i < 512; i += 128) scales_a[i] = 128, scales_b[i] = 127;
  {PROXY}
  if (warp == 0) {{ {ALLOC} }}
  __syncthreads();
  const u32 d = place;
  if (t == 0) {{
    {COPY_A}
    {COPY_B}
    asm volatile("{{.reg .pred p; setp.ne.b32 p, %0, %0;"
                 " tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
                 " [%0], %1, %2, %3, [%4], [%5], p;}}"
                 ::"r"(d), "l"(rows_of_32(a)), "l"(rows_of_32(b)), "r"(E4M3_128x8), "r"(d + 32),
                   "r"(d + 36) : "memory");
    commit(&bar);
  }}
  wait(&bar, 0);
  {AFTER}
  float r;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%0}}, [%1];"
               : "=f"(r) : "r"(d + (warp << 21)) : "memory");
  {WAIT_LOADS}
  out[t] = r;
  __syncthreads();
  if (warp == 0) {{ {FREE} }}
}}"""
)


def _case(source: str) -> SimCase:
    return SimCase(source, outputs={"out": np.zeros(128, np.float32)}, block=(128, 1, 1))


def test_product_follows_the_copies_of_its_scales(sim: Sim) -> None:
    np.testing.assert_array_equal(sim.outputs(_case(KERNEL))["out"], np.full(128, 64.0))


@pytest.mark.parametrize(
    ("right", "wrong", "status", "says"),
    [
        (COPY_B, "", Status.UNINITIALIZED_READ, "column 36 of tensor memory"),
        (
            COPY_B,
            f"}} if (t == 32) {{ {COPY_B} }} __syncthreads(); if (t == 0) {{",
            Status.DATA_RACE,
            ".cp under",
        ),
        ("  wait(&bar, 0);", "  scales_a[t] = 0; wait(&bar, 0);", Status.DATA_RACE, "still reads"),
        (PROXY, "", Status.DATA_RACE, "no fence_proxy_async() lies between"),
        ("commit(&bar);", "commit(&bar); copy(d, rows_of_16(scales_a));", Status.DATA_RACE, ""),
        ("1u << 23 |", "", Status.CRASH, "scales of ue4m3, which only mxf4nvf4"),
        ("1u << 27 |", "", Status.CRASH, "has no M of 128"),
        ("1u << 27 |", "1u << 31 | 1u << 27 |", Status.CRASH, "has bits that must be 0"),
        ("d + 36)", "d + (1 << 16) + 36)", Status.OUT_OF_BOUNDS, "scales begin at lane 0"),
        ("copy(d + 32,", "copy(d + (32 << 16) + 32,", Status.OUT_OF_BOUNDS, "from 0 on"),
    ],
)
def test_scales_that_are_not_there_are_told(
    sim: Sim, right: str, wrong: str, status: Status, says: str
) -> None:
    source = KERNEL.replace(right, wrong, 1)
    assert source != KERNEL
    assert says in sim.fault(_case(source), status).message
