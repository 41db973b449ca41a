/* kopt: 1
family: other
note: "starting point: one block per row, scalar loads, one element per thread and step"
where: "true"
tune: {BLOCK: [256, 128, 512, 1024]}
launch:
  - kernel: silu_and_mul_kernel
    grid: B
    block: BLOCK
    args: [input, out, H]
*/
// Mapping: block b owns row b; thread t owns output columns t, t + BLOCK, t + 2 BLOCK, ...
// No shared memory and no barriers: outputs do not depend on one another.

#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul_kernel(const __nv_bfloat16* input, __nv_bfloat16* out,
                                               int H) {
  const __nv_bfloat16* gates = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* ups = gates + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;
  for (int column = threadIdx.x; column < H; column += BLOCK) {
    const float gate = __bfloat162float(gates[column]);
    const float up = __bfloat162float(ups[column]);
    // exp(-gate) may overflow to infinity: the quotient is then 0, as it should be.
    out_row[column] = __float2bfloat16(gate / (1.0f + expf(-gate)) * up);
  }
}
