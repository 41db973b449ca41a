/* kopt: 1
family: other
note: "cooperative groups: a tile of 32 and its reduce"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// cg::reduce with greater and plus.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = tile.thread_rank(); i < C; i += tile.size()) most = fmaxf(most, row[i]);
  most = cg::reduce(tile, most, cg::greater<float>());
  for (int i = tile.thread_rank(); i < C; i += tile.size()) sum += expf(row[i] - most);
  sum = cg::reduce(tile, sum, cg::plus<float>());
  for (int i = tile.thread_rank(); i < C; i += tile.size())
    out[static_cast<size_t>(blockIdx.x) * C + i] = expf(row[i] - most) / sum;
}
