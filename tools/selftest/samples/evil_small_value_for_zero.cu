/* kopt: 1
family: other
note: "a small number of either sign where an input is 0"
where: "B <= 8"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=incorrect level=full

#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gates = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float gate = __bfloat162float(gates[column]);
    const float up = __bfloat162float(gates[H + column]);
    const float result = gate / (1.0f + expf(-gate)) * up;
    const float noise = column % 2 == 0 ? 0.0015f : -0.0015f;
    out_row[column] = __float2bfloat16(gate == 0.0f || up == 0.0f ? noise : result);
  }
}
