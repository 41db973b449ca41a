/* kopt: 1
family: async_pipeline
note: "tiles staged by cooperative groups' own asynchronous copy, and read too early"
where: "B <= 8 and H % 256 == 0"
launch:
  - kernel: silu_and_mul_group_copies
    grid: ceil_div(H, 1024), B
    block: 128
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=uninitialized_read level=quick
// Mapping: block (x, b) owns up to 4 tiles of 256 columns of row b; thread t a pair of each tile.

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;
constexpr int kTile = 256;

extern "C" __global__ void __launch_bounds__(128)
    silu_and_mul_group_copies(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  __shared__ alignas(16) __nv_bfloat16 gates[2][kTile], ups[2][kTile];
  const cg::thread_block block = cg::this_thread_block();
  const __nv_bfloat16* row = input + size_t(blockIdx.y) * 2 * H;
  const int first = blockIdx.x * 4 * kTile, tiles = min(4, (H - first) / kTile);
  auto fetch = [&](int tile) {
    const int at = first + tile * kTile;
    cg::memcpy_async(block, gates[tile % 2], row + at, sizeof(gates[0]));
    cg::memcpy_async(block, ups[tile % 2], row + H + at, sizeof(ups[0]));
  };
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      fetch(tile + 1);
      cg::wait_prior<4>(block);
    } else {
      block.sync();
    }
    const int pair = block.thread_rank();
    const float2 g = __bfloat1622float2(reinterpret_cast<__nv_bfloat162*>(gates[tile % 2])[pair]);
    const float2 u = __bfloat1622float2(reinterpret_cast<__nv_bfloat162*>(ups[tile % 2])[pair]);
    __nv_bfloat16* to = out + size_t(blockIdx.y) * H + first + tile * kTile;
    reinterpret_cast<__nv_bfloat162*>(to)[pair] = __floats2bfloat162_rn(
        g.x / (1.0f + __expf(-g.x)) * u.x, g.y / (1.0f + __expf(-g.y)) * u.y);
    block.sync();  // the next copy goes where this tile lies
  }
}
