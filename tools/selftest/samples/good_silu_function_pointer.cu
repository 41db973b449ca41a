/* kopt: 1
family: other
note: "the activation is a template argument that is a function, as in vLLM"
where: "B <= 8"
launch:
  - kernel: silu_function_pointer
    grid: B
    block: 1024
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 1,024, ...

#include <cstdint>
#include <cuda_bf16.h>

template <typename T>
__device__ __forceinline__ T silu_kernel(const T& x) {
  return (T)(((float)x) / (1.0f + expf((float)-x)));
}

template <float (*ACT_FN)(const float&)>
__device__ void act_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, const int d) {
  const int64_t token_idx = blockIdx.x;
  for (int64_t idx = threadIdx.x; idx < d; idx += blockDim.x) {
    const float x = __bfloat162float(__ldg(&input[token_idx * 2 * d + idx]));
    const float y = __bfloat162float(__ldg(&input[token_idx * 2 * d + d + idx]));
    out[token_idx * d + idx] = __float2bfloat16(ACT_FN(x) * y);
  }
}

extern "C" __global__ void silu_function_pointer(const __nv_bfloat16* input, __nv_bfloat16* out,
                                                 int d) {
  act_and_mul<silu_kernel<float>>(input, out, d);
}
