/* kopt: 1
family: other
note: "loads, an exponential and a reciprocal in raw PTX"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// PTX as production kernels have it: the simulator runs these instructions.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 load(const __nv_bfloat16* place) {
  unsigned short bits;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(bits) : "l"(place));
  return reinterpret_cast<const __nv_bfloat16&>(bits);
}

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  float power, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.4426950408889634f * g));
  asm("{\n\t.reg .f32 sum;\n\t"
      "add.rn.f32 sum, %1, 0f3F800000;\n\t"
      "rcp.approx.ftz.f32 %0, sum;\n\t}"
      : "=f"(inverse)
      : "f"(power));
  return __float2bfloat16(g * inverse * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  for (int column = threadIdx.x; column < H; column += 256) {
    out_row[column] = silu_mul(load(gate + column), load(up + column));
  }
}
