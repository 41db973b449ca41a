/* kopt: 1
family: reduction
note: "threads without columns leave; the rest meet as a coalesced group"
where: "B <= 8"
launch:
  - kernel: norm_coalesced_group
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 256, ...

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>

extern "C" __global__ void norm_coalesced_group(__nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float sums[8];
  __nv_bfloat16* x = input + size_t(blockIdx.x) * H;
  __nv_bfloat16* r = residual + size_t(blockIdx.x) * H;
  float squares = 0.0f;
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = 0.0f;
  __syncwarp();
  if (threadIdx.x < H) {
    for (int c = threadIdx.x; c < H; c += blockDim.x) {
      const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
      squares += h * h;
    }
    const auto active = cooperative_groups::coalesced_threads();
    const float sum = cooperative_groups::reduce(active, squares, cooperative_groups::plus<float>());
    if (active.thread_rank() == 0) sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < 8; ++w) total += sums[w];
  const float rstd = rsqrtf(total / H + eps);
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
