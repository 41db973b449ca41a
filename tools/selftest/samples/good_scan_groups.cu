/* kopt: 1
family: reduction
note: "a warp per row by cooperative groups: exclusive scans of the sums of four columns"
where: "true"
launch:
  - kernel: scan_groups
    grid: ceil_div(R, 2)
    block: 64
    args: [x, out, R, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Mapping: warp w of block x owns row 2 x + w.

#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void scan_groups(const int* x, int* out, int R, int C) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= R) return;
  int carry = 0;
  for (int first = 0; first < C; first += 128) {
    int v[4], sum = 0;
    for (int i = 0; i < 4; ++i) {
      const int c = first + warp.thread_rank() * 4 + i;
      v[i] = c < C ? x[row * C + c] : 0;
      sum += v[i];
    }
    int before = carry + cg::exclusive_scan(warp, sum, cg::plus<int>());
    for (int i = 0; i < 4; ++i) {
      const int c = first + warp.thread_rank() * 4 + i;
      before += v[i];
      if (c < C) out[row * C + c] = before;
    }
    carry = warp.shfl(before, 31);
  }
}
