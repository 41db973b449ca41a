/* kopt: 1
family: [smem_tiling, bank_conflicts]
note: "vectors in, shared memory turns them, neighbors out"
where: "B <= 8"
launch:
  - kernel: silu_shared_transpose
    grid: ceil_div(H, 256), B
    block: 64
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block (x, b) owns columns 256 x to 256 x + 255 of row b.

#include <cuda_bf16.h>

extern "C" __global__ void silu_shared_transpose(const __nv_bfloat16* input, __nv_bfloat16* out,
                                                 int H) {
  __shared__ float tile[4][64 + 1];
  const int first = blockIdx.x * 256;
  const __nv_bfloat16* row = input + size_t(blockIdx.y) * 2 * H;
  for (int i = 0; i < 4; ++i) {
    const int column = first + threadIdx.x * 4 + i;
    float y = 0.0f;
    if (column < H) {
      const float g = __bfloat162float(row[column]);
      y = g / (1.0f + __expf(-g)) * __bfloat162float(row[H + column]);
    }
    tile[i][threadIdx.x] = y;
  }
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    const int at = i * 64 + threadIdx.x;
    if (first + at < H) {
      out[size_t(blockIdx.y) * H + first + at] = __float2bfloat16(tile[at % 4][at / 4]);
    }
  }
}
