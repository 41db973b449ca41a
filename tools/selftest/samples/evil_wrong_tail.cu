/* kopt: 1
family: other
note: "steps of 1,024 columns, rounded down: H % 1024 columns are left over"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=unwritten_output level=quick
// 14,336 columns are 14 steps of 1,024; the loop asks for 4,096 at once and forgets the last 2,048.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  for (int step = 0; step < H / 4096; ++step) {
    for (int i = 0; i < 16; ++i) {
      const int column = step * 4096 + i * 256 + threadIdx.x;
      out_row[column] = silu_mul(gate[column], up[column]);
    }
  }
}
