/* kopt: 1
family: clusters
note: "two blocks of a cluster share a row; each writes its sum into the other's shared memory"
where: "B <= 128 and H % 2048 == 0"
specialize: [H]
launch:
  - kernel: fused_add_rmsnorm_cluster
    grid: 2, B
    block: 128
    cluster: 2
    args: [input, residual, weight, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block (p, b) owns half p of row b, thread t every 128th column of it; h stays in
// registers over the barrier. Shared memory: 4 floats, a partial sum per warp, and 2, a sum per block.

#include <cooperative_groups.h>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;

constexpr int STEPS = KOPT_H / 2 / 128;

extern "C" __global__ void __launch_bounds__(128)
    fused_add_rmsnorm_cluster(__nv_bfloat16* input, __nv_bfloat16* residual,
                              const __nv_bfloat16* weight, float eps) {
  __shared__ float warp_sums[4], block_sums[2];
  const cg::cluster_group cluster = cg::this_cluster();
  cluster.barrier_arrive();  // the other block runs once it has arrived, too
  const int first = blockIdx.x * (KOPT_H / 2);
  const size_t row = static_cast<size_t>(blockIdx.y) * KOPT_H;

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
  __syncthreads();  // all warps have stored their sums before two threads read them
  cluster.barrier_wait();
  if (threadIdx.x < 2) {
    float* there = cluster.map_shared_rank(block_sums, threadIdx.x);
    there[cluster.block_rank()] = warp_sums[0] + warp_sums[1] + warp_sums[2] + warp_sums[3];
  }
  cluster.sync();  // both sums have arrived; nobody writes to another block after this

  const float rstd = rsqrtf((block_sums[0] + block_sums[1]) / KOPT_H + eps);
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const int column = first + step * 128 + threadIdx.x;
    input[row + column] = __float2bfloat16(h[step] * rstd * __bfloat162float(weight[column]));
  }
}
