/* kopt: 1
family: other
note: "a loop over 15 of 16 columns"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 128
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=unwritten_output level=quick
// Column 15 of every 16 is never stored.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  for (int block = threadIdx.x; block < H / 16; block += 128) {
    for (int i = 0; i < 15; ++i) {
      out_row[block * 16 + i] = silu_mul(gate[block * 16 + i], up[block * 16 + i]);
    }
  }
}
