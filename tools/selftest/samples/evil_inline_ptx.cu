/* kopt: 1
family: other
note: "a load that acquires for its block alone, in raw PTX"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=unsupported_on_sim level=quick
// Right, but the simulator knows no orders of a block alone in global memory, and refuses what it does
// not know.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  for (int column = threadIdx.x; column < H; column += 256) {
    out_row[column] = silu_mul(gate[column], up[column]);
  }
  unsigned short last = 0;
  asm volatile("ld.acquire.cta.global.b16 %0, [%1];" : "=h"(last) : "l"(out_row) : "memory");
}
