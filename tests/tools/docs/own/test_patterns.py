"""The patterns that ship for copying do what they say: kernels made of them pass a check on sim."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.docs.chunking.brace_scanner import code_items
from kopt.tools.sim.device import SimDevice

pytestmark = pytest.mark.slow  # a program and a check for each pattern
NOTES = Path(__file__).parents[4] / "tools" / "docs" / "notes"
PATTERNS = (NOTES / "patterns.cuh").read_text("utf-8").replace("#pragma once\n", "")

VECTORS = """/* kopt: 1
family: vectorization
where: "B <= 8 and H == 4096"
launch:
  - {kernel: rows, grid: B, block: 512, pdl: true, args: [input, residual, weight, H, eps]}
*/
PATTERNS
extern "C" __global__ void rows(__nv_bfloat16* input, __nv_bfloat16* residual,
                                const __nv_bfloat16* weight, int H, float eps) {
  __nv_bfloat16* x_row = input + static_cast<size_t>(blockIdx.x) * H;
  __nv_bfloat16* r_row = residual + static_cast<size_t>(blockIdx.x) * H;
  float x[8], r[8], w[8];
  load_8_bf16(weight, threadIdx.x, w);
  kopt::griddepcontrol_wait();
  load_8_bf16(x_row, threadIdx.x, x);
  load_8_bf16(r_row, threadIdx.x, r);
  float sum = 0.0f;
  for (int i = 0; i < 8; ++i) {
    r[i] += x[i];
    sum += r[i] * r[i];
  }
  const float rstd = rsqrtf(block_sum<512>(sum) / H + eps);
  for (int i = 0; i < 8; ++i) x[i] = r[i] * rstd * w[i];
  store_8_bf16(r_row, threadIdx.x, r);
  store_8_bf16(x_row, threadIdx.x, x);
}
"""

BULK = """/* kopt: 1
family: async_pipeline
where: "B <= 8 and H == 4096"
launch:
  - {kernel: rows, grid: B, block: 256, args: [input, residual, weight, H, eps]}
*/
PATTERNS
extern "C" __global__ void rows(__nv_bfloat16* input, __nv_bfloat16* residual,
                                const __nv_bfloat16* weight, int H, float eps) {
  __shared__ alignas(16) __nv_bfloat16 x[4096];
  __shared__ alignas(16) __nv_bfloat16 r[4096];
  __shared__ kopt::mbarrier_t x_loaded, r_loaded;
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  load_row(x, input + row, sizeof x, &x_loaded);
  load_row(r, residual + row, sizeof r, &r_loaded);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < H; i += 256) {
    const float h = __bfloat162float(x[i]) + __bfloat162float(r[i]);
    sum += h * h;
  }
  const float rstd = rsqrtf(block_sum<256>(sum) / H + eps);
  for (int i = threadIdx.x; i < H; i += 256) {
    const float h = __bfloat162float(x[i]) + __bfloat162float(r[i]);
    r[i] = __float2bfloat16(h);
    x[i] = __float2bfloat16(h * rstd * __bfloat162float(weight[i]));
  }
  store_row(input + row, x, sizeof x);
  store_row(residual + row, r, sizeof r);
}
"""

LAST_BLOCK = """/* kopt: 1
family: grid_shape
where: "B <= 8"
scratch:
  partial: {dtype: float32, shape: "B, 4"}
  arrived: {dtype: int32, shape: B, init: zero}
launch:
  - kernel: quarters
    grid: 4, B
    block: 256
    args: [input, residual, weight, partial, arrived, H, eps]
*/
PATTERNS
extern "C" __global__ void quarters(__nv_bfloat16* input, __nv_bfloat16* residual,
                                    const __nv_bfloat16* weight, float* partial, int* arrived,
                                    int H, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.y) * H;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < H / 4; i += 256) {
    const size_t at = row + blockIdx.x * (H / 4) + i;
    const float h = __bfloat162float(input[at]) + __bfloat162float(residual[at]);
    sum += h * h;
  }
  sum = block_sum<256>(sum);
  if (threadIdx.x == 0) partial[blockIdx.y * 4 + blockIdx.x] = sum;
  if (!is_last_block(&arrived[blockIdx.y], 4)) return;
  float total = 0.0f;
  for (int part = 0; part < 4; ++part) total += partial[blockIdx.y * 4 + part];
  const float rstd = rsqrtf(total / H + eps);
  for (int i = threadIdx.x; i < H; i += 256) {
    const float h = __bfloat162float(input[row + i]) + __bfloat162float(residual[row + i]);
    residual[row + i] = __float2bfloat16(h);
    input[row + i] = __float2bfloat16(h * rstd * __bfloat162float(weight[i]));
  }
}
"""

RING = """/* kopt: 1
family: async_pipeline
where: "B <= 8 and H % 2048 == 0"
launch:
  - {kernel: gated, grid: B, block: 256, smem: 3 * 256 * 16, args: [input, out, H]}
*/
PATTERNS
extern __shared__ uint4 ring[];
extern "C" __global__ void gated(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gates = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  __nv_bfloat16* results = out + static_cast<size_t>(blockIdx.x) * H;
  for_each_vector<3, 256>(
      reinterpret_cast<const uint4*>(gates), H / 2048, ring, [&](int step, uint4 packed) {
        float gate[8], up[8];
        load_8_bf16(reinterpret_cast<const __nv_bfloat16*>(&packed), 0, gate);
        load_8_bf16(gates + H, step * 256 + threadIdx.x, up);
        for (int i = 0; i < 8; ++i) up[i] *= gate[i] / (1.0f + __expf(-gate[i]));
        store_8_bf16(results, step * 256 + threadIdx.x, up);
      });
}
"""

GRID = """/* kopt: 1
family: grid_shape
where: "B <= 8"
scratch: {sums: {dtype: float32, shape: B}, largest: {dtype: float32, shape: B}}
launch:
  - kernel: rows
    grid: B
    block: 128
    cooperative: true
    args: [input, residual, weight, sums, largest, H, eps]
*/
PATTERNS
extern "C" __global__ void rows(__nv_bfloat16* input, __nv_bfloat16* residual,
                                const __nv_bfloat16* weight, float* sums, float* largest, int H,
                                float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f, top = 0.0f;
  for (int i = threadIdx.x; i < H; i += 128) {
    const float h = __bfloat162float(input[row + i]) + __bfloat162float(residual[row + i]);
    sum += h * h;
    top = fmaxf(top, fabsf(h));
  }
  sum = block_sum<128>(sum);
  top = warp_max(top);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    largest[blockIdx.x] = top;
  }
  grid_barrier();
  const float rstd = rsqrtf(sums[blockIdx.x] / H + eps);
  for (int i = threadIdx.x; i < H; i += 128) {
    const float h = __bfloat162float(input[row + i]) + __bfloat162float(residual[row + i]);
    residual[row + i] = __float2bfloat16(h);
    input[row + i] = __float2bfloat16(h * rstd * __bfloat162float(weight[i]));
  }
}
"""

RMSNORM, SILU = "fused_add_rmsnorm_b8xh4096", "silu_and_mul_b8xh14336"
NOT_CALLED = {"weight_before_wait"}  # compiled with the others; VECTORS waits in its place


@pytest.mark.parametrize(
    ("kernel", "source"),
    [(RMSNORM, VECTORS), (RMSNORM, BULK), (RMSNORM, LAST_BLOCK), (RMSNORM, GRID), (SILU, RING)],
    ids=["vectors", "bulk", "last_block", "grid", "ring"],
)
def test_a_kernel_made_of_patterns_passes(kernel: str, source: str, settings: Settings) -> None:
    problem, workload = find_kernel(kernel)
    candidate = Candidate(source.replace("PATTERNS\n", PATTERNS))
    request = CheckRequest(Case(problem, workload, candidate), "quick")
    result = check_candidate(request, SimDevice(settings), settings)
    assert result.status == Status.PASSED, result.diagnostics


def test_every_pattern_is_used_by_one_of_these_kernels() -> None:
    kernels = VECTORS + BULK + LAST_BLOCK + GRID + RING + PATTERNS.split("block_sum(float")[1]
    patterns = {item.symbol for item in code_items(PATTERNS)} - NOT_CALLED
    assert {name for name in patterns if f"{name}(" not in kernels.replace("<", "(")} == set()
