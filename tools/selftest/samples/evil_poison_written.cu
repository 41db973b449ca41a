/* kopt: 1
family: other
note: "stores the byte patterns that mark unwritten memory"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=incorrect level=quick
// 0x5555 looks like memory that was never written; it was, and it is wrong.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  unsigned short* row =
      reinterpret_cast<unsigned short*>(out) + static_cast<size_t>(blockIdx.x) * H;
  for (int column = threadIdx.x; column < H; column += 256) row[column] = 0x5555;
}
