/* kopt: 1
family: coarsening
note: "eight rows to a block, the rows that are left over are masked off"
launch:
  - kernel: silu_and_mul
    grid: H // 256, ceil_div(B, 8)
    block: 256
    args: [input, out, B, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Tiles of rows serve every row count where the last one ends early.

#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int B,
                                        int H) {
  const size_t first = blockIdx.y * 8;
  const int column = blockIdx.x * 256 + threadIdx.x;
  for (size_t row = first; row < min(first + 8, size_t(B)); ++row) {
    const float g = __bfloat162float(input[row * 2 * H + column]);
    const float up = __bfloat162float(input[row * 2 * H + H + column]);
    out[row * H + column] = __float2bfloat16(g / (1.0f + __expf(-g)) * up);
  }
}
