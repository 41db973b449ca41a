/* kopt: 1
family: other
note: "two blocks of a cluster share a row"
launch:
  - kernel: softmax
    grid: 2, R
    block: 32
    cluster: 2, 1, 1
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Maximum and sum go through distributed shared memory.

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  __shared__ float2 mine;
  const cg::cluster_group cluster = cg::this_cluster();
  const int first = blockIdx.x * (C / 2), last = blockIdx.x == 0 ? C / 2 : C;
  const float* row = x + static_cast<size_t>(blockIdx.y) * C;
  float most = -1e30f, sum = 0.0f;
  for (int i = first + threadIdx.x; i < last; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int i = first + threadIdx.x; i < last; i += 32) sum += __expf(row[i] - most);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) mine = make_float2(most, sum);
  cluster.sync();
  const float2 other = *cluster.map_shared_rank(&mine, blockIdx.x ^ 1);
  const float all = fmaxf(most, other.x);
  const float total = sum * __expf(most - all) + other.y * __expf(other.x - all);
  for (int i = first + threadIdx.x; i < last; i += 32)
    out[static_cast<size_t>(blockIdx.y) * C + i] = __expf(row[i] - all) / total;
  cluster.sync();  // the other block may still read `mine`
}
