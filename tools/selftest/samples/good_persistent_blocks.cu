/* kopt: 1
family: persistent
note: "as many blocks as fit on the GPU at once stride over all elements"
where: "B <= 128"
launch:
  - kernel: silu_and_mul
    grid: SM_COUNT * blocks_per_sm
    block: 256
    args: [input, out, {int64: B * H}, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full

#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out,
                                        long long elements, int H) {
  const long long stride = 256ll * gridDim.x;
  for (long long i = 256ll * blockIdx.x + threadIdx.x; i < elements; i += stride) {
    const __nv_bfloat16* gate = input + i / H * 2 * H;
    const float g = __bfloat162float(gate[i % H]);
    const float u = __bfloat162float(gate[H + i % H]);
    out[i] = __float2bfloat16(g / (1.0f + __expf(-g)) * u);
  }
}
