/* kopt: 1
family: other
note: "results are cut off, not rounded"
launch:
  - kernel: silu_and_mul_scalar
    grid: ceil_div(H, 256), B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=incorrect level=quick says="cut off, not rounded"
// Half a step too small on average, never more than one.

#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul_scalar(const __nv_bfloat16* input, __nv_bfloat16* out,
                                               int H) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  if (column >= H) return;
  const __nv_bfloat16* gate_row = input + static_cast<size_t>(blockIdx.y) * 2 * H;
  const float gate = __bfloat162float(gate_row[column]);
  const float up = __bfloat162float(gate_row[H + column]);
  out[static_cast<size_t>(blockIdx.y) * H + column] =
      __float2bfloat16_rz(gate / (1.0f + __expf(-gate)) * up);
}
