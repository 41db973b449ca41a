/* kopt: 1
family: grid_shape
note: "a block of two dimensions, a grid of three"
where: "B <= 8"
launch:
  - kernel: silu_three_dimensions
    grid: ceil_div(H, 128), ceil_div(B, 4), 2
    block: 64, 4
    args: [input, out, B, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread (t, y) of block (x, r, z) owns one column of row 4 r + y.

#include <cuda_bf16.h>

extern "C" __global__ void silu_three_dimensions(const __nv_bfloat16* input, __nv_bfloat16* out,
                                                 int B, int H) {
  const dim3 at(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
  const int column = at.x + blockIdx.z * gridDim.x * blockDim.x;
  const int row = at.y;
  if (row >= B || column >= H) return;
  const size_t from = size_t(row) * 2 * H + column;
  const float g = __bfloat162float(input[from]), u = __bfloat162float(input[from + H]);
  out[size_t(row) * H + column] = __float2bfloat16(g / (1.0f + __expf(-g)) * u);
}
