/* kopt: 1
family: persistent
note: "scratch has room for one block on each SM; as many are launched as fit"
scratch: {started: {dtype: float32, shape: SM_COUNT}}
where: "B <= 8"
launch:
  - kernel: silu_and_mul
    grid: SM_COUNT * blocks_per_sm
    block: 256
    args: [input, out, started, {int32: B * H}, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=out_of_bounds level=quick says=started

#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out,
                                        float* started, int elements, int H) {
  if (threadIdx.x == 0) started[blockIdx.x] = 1.0f;  // <- here
  for (int i = blockIdx.x * 256 + threadIdx.x; i < elements; i += gridDim.x * 256) {
    const __nv_bfloat16* gate = input + i / H * 2 * H;
    const float g = __bfloat162float(gate[i % H]);
    const float u = __bfloat162float(gate[H + i % H]);
    out[i] = __float2bfloat16(g / (1.0f + __expf(-g)) * u);
  }
}
