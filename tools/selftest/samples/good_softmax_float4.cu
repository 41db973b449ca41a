/* kopt: 1
family: vectorization
note: "four columns a load; float4 in and out, kept in shared memory on the way"
where: "C % 4 == 0 and C <= 8192"
launch:
  - kernel: softmax_float4
    grid: R
    block: 32
    smem: 4 * C
    args: [x, out, {int32: "C // 4"}]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Mapping: the warp of block b owns row b, four columns a lane.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __launch_bounds__(32) softmax_float4(const float4* x, float4* out, int quads) {
  extern __shared__ float4 row[];
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const float4* from = x + size_t(blockIdx.x) * quads;
  float most = -3e38f;
  for (int q = warp.thread_rank(); q < quads; q += 32) {
    const float4 v = from[q];
    row[q] = v;
    most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  most = cg::reduce(warp, most, cg::greater<float>());
  float sum = 0.0f;
  for (int q = warp.thread_rank(); q < quads; q += 32) {
    float4 v = row[q];
    v.x = __expf(v.x - most);
    v.y = __expf(v.y - most);
    v.z = __expf(v.z - most);
    v.w = __expf(v.w - most);
    sum += (v.x + v.y) + (v.z + v.w);
    row[q] = v;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>());
  for (int q = warp.thread_rank(); q < quads; q += 32) {
    const float4 v = row[q];
    out[size_t(blockIdx.x) * quads + q] = make_float4(v.x / sum, v.y / sum, v.z / sum, v.w / sum);
  }
}
