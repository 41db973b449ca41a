/* kopt: 1
family: [smem_tiling, bank_conflicts]
note: "gates and ups staged in a dynamic array of two dimensions, rows padded by a pair"
where: "B <= 8 and H % 4 == 0"
launch:
  - kernel: silu_and_mul_staged
    grid: ceil_div(H // 2, 64), ceil_div(B, 2)
    block: 64, 2
    smem: "4 * 66 * 4"
    args: [input, out, B, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread (t, y) of block (x, z) owns the pair of columns 64 x + t of row 2 z + y.
// Shared memory: four rows of 64 pairs, two of gates and two of ups, each two pairs longer.

#include <cmath>
#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul_staged(const __nv_bfloat16* input, __nv_bfloat16* out,
                                               int B, int H) {
  extern __shared__ __nv_bfloat162 stage[][66];
  const int pair = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y * 2 + threadIdx.y;
  const bool is_mine = pair < H / 2 && row < B;
  __builtin_assume(H >= 4);
  if (is_mine) {
    const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(input) + size_t(row) * H;
    stage[threadIdx.y][threadIdx.x] = pairs[pair];
    stage[2 + threadIdx.y][threadIdx.x] = pairs[H / 2 + pair];
  }
  __syncthreads();
  if (!is_mine) return;
  const float2 gate = __bfloat1622float2(stage[threadIdx.y][threadIdx.x]);
  const float2 up = __bfloat1622float2(stage[2 + threadIdx.y][threadIdx.x]);
  float2 product = make_float2(gate.x / (1.0f + __expf(-gate.x)) * up.x,
                               gate.y / (1.0f + __expf(-gate.y)) * up.y);
  if (isnan(product.x)) product.x = 0.0f;
  if (isnan(product.y)) product.y = 0.0f;
  reinterpret_cast<__nv_bfloat162*>(out)[size_t(row) * (H / 2) + pair] =
      __float22bfloat162_rn(product);
}
