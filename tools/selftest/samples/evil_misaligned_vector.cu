/* kopt: 1
family: other
note: "16-byte loads that begin 2 bytes late"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=misaligned level=quick
// The shifted pointer is valid memory but no multiple of 16.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  for (int vector = threadIdx.x; vector < H / 8 - 1; vector += 256) {
    const uint4 gates = *reinterpret_cast<const uint4*>(gate + vector * 8 + 1);  // <- here
    const auto* values = reinterpret_cast<const __nv_bfloat16*>(&gates);
    for (int i = 0; i < 8; ++i) {
      out_row[vector * 8 + 1 + i] = silu_mul(values[i], up[vector * 8 + 1 + i]);
    }
  }
}
