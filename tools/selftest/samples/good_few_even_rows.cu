/* kopt: 1
family: other
note: "few rows in even number take 16 columns a thread"
where: "B <= 8"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, B, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// The honest twin of evil_few_even_rows: what fills no group comes after.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int B,
                                        int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;
  const bool groups = B < 8 && B % 2 == 0;
  const int width = groups ? H / 4096 * 4096 : 0;
  for (int first = threadIdx.x * 16; first < width; first += 4096) {
    for (int column = first; column < first + 16; ++column) {
      out_row[column] = silu_mul(gate[column], up[column]);
    }
  }
  for (int column = width + threadIdx.x; column < H; column += 256) {
    out_row[column] = silu_mul(gate[column], up[column]);
  }
}
