/* kopt: 1
family: other
note: "blocks without work leave before the grid barrier"
where: "B <= 8"
scratch: {partial: {dtype: float32, shape: "B, 4"}}
launch:
  - kernel: fused_add_rmsnorm_cooperative
    grid: 5, B
    block: 128
    cooperative: true
    args: [input, residual, weight, partial, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=barrier_divergence level=quick says=ended
// The barrier of the grid counts all of its blocks: those that are gone never come.

#include <cooperative_groups.h>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;

constexpr int STEPS = 8;

extern "C" __global__ void __launch_bounds__(128)
    fused_add_rmsnorm_cooperative(__nv_bfloat16* input, __nv_bfloat16* residual,
                                  const __nv_bfloat16* weight, float* partial, int H, float eps) {
  __shared__ float warp_sums[4];
  if (blockIdx.x == 4) return;
  const int quarter = H / 4;
  const int first = blockIdx.x * quarter;
  const size_t row = static_cast<size_t>(blockIdx.y) * H;

  float h[STEPS];
  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const size_t at = row + first + step * 128 + threadIdx.x;
    h[step] = __bfloat162float(input[at]) + __bfloat162float(residual[at]);
    residual[at] = __float2bfloat16(h[step]);
    sum += h[step] * h[step];
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before thread 0 reads them
  if (threadIdx.x == 0) {
    partial[blockIdx.y * 4 + blockIdx.x] =
        warp_sums[0] + warp_sums[1] + warp_sums[2] + warp_sums[3];
  }
  cg::this_grid().sync();  // <- here

  float total = 0.0f;
  for (int part = 0; part < 4; ++part) total += partial[blockIdx.y * 4 + part];
  const float rstd = rsqrtf(total / H + eps);
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const int column = first + step * 128 + threadIdx.x;
    input[row + column] = __float2bfloat16(h[step] * rstd * __bfloat162float(weight[column]));
  }
}
