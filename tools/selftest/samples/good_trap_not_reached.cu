/* kopt: 1
family: other
note: "a trap behind a test that never holds"
where: "B <= 8"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// A guard against a launch that the header does not make.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  for (int column = threadIdx.x; column < H; column += 256) {
    if (gridDim.y != 1) __trap();
    out[static_cast<size_t>(blockIdx.x) * H + column] = silu_mul(gate[column], up[column]);
  }
}
