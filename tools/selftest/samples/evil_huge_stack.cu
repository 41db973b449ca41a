/* kopt: 1
family: other
note: "300 KB of local variables per thread"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 32
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=crash level=quick says=stack
// A whole row as a local array.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  float row[75000];
  for (int column = threadIdx.x; column < H; column += 32) {
    row[column] = __bfloat162float(silu_mul(gate[column], up[column]));
  }
  for (int column = threadIdx.x; column < H; column += 32) {
    out_row[column] = __float2bfloat16(row[column]);
  }
}
