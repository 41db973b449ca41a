/* kopt: 1
family: other
note: "rows counted from 1: the last block reads behind the input"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=out_of_bounds level=quick says=input
// Block b takes row b + 1.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const size_t row = blockIdx.x + 1;
  for (int column = threadIdx.x; column < H; column += 256) {
    const __nv_bfloat16 gate = input[row * 2 * H + column];  // <- here
    out[row * H + column] = silu_mul(gate, input[row * 2 * H + H + column]);
  }
}
