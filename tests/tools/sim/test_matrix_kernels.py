"""Kernels as people write them: macros around PTX, sums that are factors of the next product."""

import ml_dtypes
import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Array, Sim, SimCase

ATTENTION = r"""
#include <cuda_bf16.h>
#define bf16 __nv_bfloat16
#define CP_ASYNC_CG(dst, src, bytes) \
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" \
               ::"r"(dst), "l"(src), "n"(bytes))
#define LDMATRIX_X4(R0, R1, R2, R3, addr) \
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3) : "r"(addr))
#define LDMATRIX_X4_T(R0, R1, R2, R3, addr) \
  asm volatile("ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3) : "r"(addr))
#define HMMA16816(RD, RA, B0, B1) \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,  %1,  %2,  %3}, " \
               "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n" \
               : "=f"(RD[0]), "=f"(RD[1]), "=f"(RD[2]), "=f"(RD[3]) \
               : "r"(RA[0]), "r"(RA[1]), "r"(RA[2]), "r"(RA[3]), "r"(B0), "r"(B1), \
                 "f"(RD[0]), "f"(RD[1]), "f"(RD[2]), "f"(RD[3]))

constexpr int D = 32, KEYS = 64, WIDTH = D + 8;

__device__ unsigned at(const bf16* place) {
  return static_cast<unsigned>(__cvta_generic_to_shared(place));
}
__device__ unsigned packed(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ void fill(bf16 (*tile)[WIDTH], const bf16* from, int rows) {
  for (int i = threadIdx.x; i < rows * D / 8; i += blockDim.x)
    CP_ASYNC_CG(at(&tile[i / (D / 8)][i % (D / 8) * 8]), from + i * 8, 16);
}

extern "C" __global__ void k(const bf16* Q, const bf16* K, const bf16* V, float* O) {
  __shared__ __align__(128) bf16 q[32][WIDTH], keys[KEYS][WIDTH], values[KEYS][WIDTH];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  fill(q, Q, 32), fill(keys, K, KEYS);
  asm volatile("cp.async.commit_group;\n" ::);
  fill(values, V, KEYS);
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(1));
  __syncthreads();

  float s[KEYS / 8][4] = {};
  for (int d = 0; d < D; d += 16) {
    unsigned a[4], b[4];
    LDMATRIX_X4(a[0], a[1], a[2], a[3], at(&q[warp * 16 + lane % 16][d + lane / 16 * 8]));
    for (int n = 0; n < KEYS; n += 16) {
      LDMATRIX_X4(b[0], b[1], b[2], b[3],
                  at(&keys[n + lane / 16 * 8 + lane % 8][d + lane / 8 % 2 * 8]));
      HMMA16816(s[n / 8], a, b[0], b[1]);
      HMMA16816(s[n / 8 + 1], a, b[2], b[3]);
    }
  }

  const float scale = 1.4426950408889634f * 0.17677669529663687f;  // log2(e) / sqrt(D)
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int i = 0; i < KEYS / 8 * 4; ++i)
    most[i % 4 / 2] = fmaxf(most[i % 4 / 2], s[i / 4][i % 4]);
  for (int half = 0; half < 2; ++half)
    for (int by = 1; by < 4; by *= 2)
      most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffff, most[half], by));
  for (int i = 0; i < KEYS / 8 * 4; ++i) {
    float& one = s[i / 4][i % 4];
    one = exp2f((one - most[i % 4 / 2]) * scale);
    sum[i % 4 / 2] += one;
  }
  for (int half = 0; half < 2; ++half)
    for (int by = 1; by < 4; by *= 2) sum[half] += __shfl_xor_sync(0xffffffff, sum[half], by);

  WAIT
  float o[D / 8][4] = {};
  for (int n = 0; n < KEYS; n += 16) {
    const float(*p)[4] = &s[n / 8];
    const unsigned a[4] = {packed(p[0][0], p[0][1]), packed(p[0][2], p[0][3]),
                           packed(p[1][0], p[1][1]), packed(p[1][2], p[1][3])};
    for (int d = 0; d < D; d += 16) {
      unsigned b[4];
      LDMATRIX_X4_T(b[0], b[1], b[2], b[3], at(&values[n + lane % 16][d + lane / 16 * 8]));
      HMMA16816(o[d / 8], a, b[0], b[1]);
      HMMA16816(o[d / 8 + 1], a, b[2], b[3]);
    }
  }
  for (int i = 0; i < D / 8 * 4; ++i) {
    const int row = warp * 16 + lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    O[row * D + column] = o[i / 4][i % 4] / sum[i % 4 / 2];
  }
}
"""
WAIT = 'asm volatile("cp.async.wait_group %0;\\n" ::"n"(0));\n  __syncthreads();'


def _inputs() -> dict[str, Array]:
    random = np.random.default_rng(5)
    return {
        name: random.normal(size=(rows, 32)).astype(ml_dtypes.bfloat16)
        for name, rows in (("q", 32), ("k", 64), ("v", 64))
    }


def _case(wait: str) -> SimCase:
    outputs = {"o": np.zeros((32, 32), np.float32)}
    return SimCase(
        ATTENTION.replace("WAIT", wait), inputs=_inputs(), outputs=outputs, block=(64, 1, 1)
    )


def _expected() -> Array:
    q, k, v = (one.astype(np.float64) for one in _inputs().values())
    weights = np.exp(q @ k.T / np.sqrt(32))
    expected: Array = weights / weights.sum(axis=1, keepdims=True) @ v
    return expected


@pytest.mark.parametrize("seed", range(3))
def test_attention_of_one_block_is_right(sim: Sim, seed: int) -> None:
    found = sim.with_(seed=seed).outputs(_case(WAIT))["o"]
    np.testing.assert_allclose(found, _expected(), atol=8e-3)


@pytest.mark.slow  # a whole kernel for each
@pytest.mark.parametrize("wait", ["", "__syncthreads();", WAIT.split("\n")[0]])
def test_values_that_have_not_come_are_told(sim: Sim, wait: str) -> None:
    outcome = sim.execute(_case(wait))
    assert outcome.status in (Status.UNINITIALIZED_READ, Status.DATA_RACE), outcome
