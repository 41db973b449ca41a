/* kopt: 1
family: reduction
note: "a warp per row: no shared memory, no block barrier, h stays in registers"
where: "B <= 8"
specialize: [H]
launch:
  - kernel: fused_add_rmsnorm_warp
    grid: ceil_div(B, 2)
    block: 32, 2
    args: [input, residual, weight, B, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: warp y of block x owns row 2 x + y; lane l owns the pairs of columns l, l + 32, ...
// Each lane keeps its KOPT_H / 64 pairs of h in registers between the sum and the store.

#include <cuda_bf16.h>

constexpr int PAIRS = KOPT_H / 64;

__device__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

extern "C" __global__ void __launch_bounds__(64)
    fused_add_rmsnorm_warp(__nv_bfloat16* input, __nv_bfloat16* residual,
                           const __nv_bfloat16* weight, int B, float eps) {
  const int row = blockIdx.x * 2 + threadIdx.y;
  if (row >= B) return;  // the same for all lanes of a warp
  auto* x = reinterpret_cast<__nv_bfloat162*>(input) + static_cast<size_t>(row) * (KOPT_H / 2);
  auto* r = reinterpret_cast<__nv_bfloat162*>(residual) + static_cast<size_t>(row) * (KOPT_H / 2);
  const auto* w = reinterpret_cast<const __nv_bfloat162*>(weight);

  float2 h[PAIRS];
  float sum_of_squares = 0.0f;
#pragma unroll
  for (int i = 0; i < PAIRS; ++i) {
    const int pair = i * 32 + threadIdx.x;
    const float2 a = __bfloat1622float2(x[pair]);
    const float2 b = __bfloat1622float2(r[pair]);
    h[i] = make_float2(a.x + b.x, a.y + b.y);
    sum_of_squares += h[i].x * h[i].x + h[i].y * h[i].y;
    r[pair] = __floats2bfloat162_rn(h[i].x, h[i].y);
  }
  const float rstd = rsqrtf(warp_sum(sum_of_squares) / KOPT_H + eps);
#pragma unroll
  for (int i = 0; i < PAIRS; ++i) {
    const int pair = i * 32 + threadIdx.x;
    const float2 scale = __bfloat1622float2(w[pair]);
    x[pair] = __floats2bfloat162_rn(h[i].x * rstd * scale.x, h[i].y * rstd * scale.y);
  }
}
