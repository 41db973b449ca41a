/* kopt: 1
family: other
note: "cooperative groups: sixteen threads a row"
launch:
  - kernel: layer_norm
    grid: ceil_div(R, 4)
    block: 64
    args: [x, gamma, beta, out, R, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Four rows a block; a tile without a row leaves.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int R, int C, float eps) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int row = blockIdx.x * 4 + tile.meta_group_rank();
  if (row >= R) return;
  const __half* from = x + static_cast<size_t>(row) * C;
  float sum = 0.0f, squares = 0.0f;
  for (int i = tile.thread_rank(); i < C; i += 16) sum += __half2float(from[i]);
  const float mean = cg::reduce(tile, sum, cg::plus<float>()) / C;
  for (int i = tile.thread_rank(); i < C; i += 16) {
    const float d = __half2float(from[i]) - mean;
    squares += d * d;
  }
  const float rstd = rsqrtf(cg::reduce(tile, squares, cg::plus<float>()) / C + eps);
  for (int i = tile.thread_rank(); i < C; i += 16)
    out[static_cast<size_t>(row) * C + i] = __float2half(
        (__half2float(from[i]) - mean) * rstd * __half2float(gamma[i]) + __half2float(beta[i]));
}
