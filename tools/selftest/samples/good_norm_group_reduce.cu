/* kopt: 1
family: reduction
note: "cooperative groups: reduce over tiles, then over the sums of the tiles"
where: "B <= 8"
launch:
  - kernel: norm_group_reduce
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 256, ...

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;

template <int kThreads>
__device__ float block_sum(const cg::thread_block& block, float value) {
  __shared__ float sums[kThreads / 32];
  const auto tile = cg::tiled_partition<32>(block);
  const float of_tile = cg::reduce(tile, value, cg::plus<float>());
  cg::invoke_one(tile, [&] { sums[tile.meta_group_rank()] = of_tile; });
  block.sync();
  const float other = tile.thread_rank() < kThreads / 32 ? sums[tile.thread_rank()] : 0.0f;
  return cg::reduce(tile, other, cg::plus<float>());
}

extern "C" __global__ void norm_group_reduce(__nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, int H, float eps) {
  const cg::thread_block block = cg::this_thread_block();
  __nv_bfloat16* x = input + size_t(blockIdx.x) * H;
  __nv_bfloat16* r = residual + size_t(blockIdx.x) * H;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    squares += h * h;
  }
  const float rstd = rsqrtf(block_sum<256>(block, squares) / H + eps);
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
