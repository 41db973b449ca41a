/* kopt: 1
family: [pass_fusion, cache_policy]
note: "programmatic dependent launch: the weights, static, are loaded before the wait"
where: "B <= 8 and H <= 4096"
launch:
  - kernel: fused_add_rmsnorm_pdl
    grid: B
    block: 512
    pdl: true
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b, thread t the 8 columns from 8 t on (H <= 4096).
// Shared memory: 16 floats, a partial sum per warp.

#include <cuda_bf16.h>
#include <kopt/griddepcontrol.cuh>

struct alignas(16) Vector {
  __nv_bfloat162 pairs[4];
};

extern "C" __global__ void __launch_bounds__(512)
    fused_add_rmsnorm_pdl(__nv_bfloat16* input, __nv_bfloat16* residual,
                          const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float warp_sums[16];
  const bool has_columns = threadIdx.x < H / 8;
  const size_t at = static_cast<size_t>(blockIdx.x) * (H / 8) + threadIdx.x;
  Vector w = {};
  if (has_columns) w = reinterpret_cast<const Vector*>(weight)[threadIdx.x];
  kopt::griddepcontrol_wait();  // input and residual are what the kernel before writes

  float2 h[4] = {};
  float sum = 0.0f;
  if (has_columns) {
    const Vector x = reinterpret_cast<Vector*>(input)[at];
    Vector r = reinterpret_cast<Vector*>(residual)[at];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 a = __bfloat1622float2(x.pairs[i]), b = __bfloat1622float2(r.pairs[i]);
      h[i] = make_float2(a.x + b.x, a.y + b.y);
      sum += h[i].x * h[i].x + h[i].y * h[i].y;
      r.pairs[i] = __floats2bfloat162_rn(h[i].x, h[i].y);
    }
    reinterpret_cast<Vector*>(residual)[at] = r;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
  for (int warp = 0; warp < 16; ++warp) total += warp_sums[warp];
  const float rstd = rsqrtf(total / H + eps);
  if (has_columns) {
    Vector normed;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 scale = __bfloat1622float2(w.pairs[i]);
      normed.pairs[i] = __floats2bfloat162_rn(h[i].x * rstd * scale.x, h[i].y * rstd * scale.y);
    }
    reinterpret_cast<Vector*>(input)[at] = normed;
  }
  kopt::griddepcontrol_launch_dependents();
}
