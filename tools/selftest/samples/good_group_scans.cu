/* kopt: 1
family: [reduction, thread_utilization]
note: "a warp per row by cooperative groups: the sum is the last value of an inclusive scan"
where: "B <= 8"
launch:
  - kernel: add_rmsnorm_scans
    grid: ceil_div(B, 4)
    block: 128
    args: [input, residual, weight, B, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: tile w of block x owns row 4 x + w; lane l the columns l, l + 32, ...

#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;

extern "C" __global__ void add_rmsnorm_scans(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, unsigned B, unsigned H,
                                             float eps) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const unsigned row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
  if (row >= B) return;
  __nv_bfloat16* x = input + size_t(row) * H;
  __nv_bfloat16* r = residual + size_t(row) * H;
  float squares = 0.0f;
  for (unsigned c = tile.thread_rank(); c < H; c += tile.size()) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    squares += h * h;
  }
  const float sum = tile.shfl(cg::inclusive_scan(tile, squares, cg::plus<float>()), 31);
  const float rstd = rsqrtf(sum / H + eps);
  for (unsigned c = tile.thread_rank(); c < H; c += tile.size()) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
