/* kopt: 1
family: other
note: "whole parts and fractions are added apart, an angle gives sine and cosine"
launch:
  - kernel: fused_add_rmsnorm
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// modff, frexpf and sincosf store through pointers: to shared memory and to registers.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float whole[256], fraction[256];
  __shared__ int exponent[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sum += h * h;
  }
  fraction[threadIdx.x] = modff(sum, &whole[threadIdx.x]);
  float sine, cosine;
  sincosf(sum, &sine, &cosine);
  const float mantissa = frexpf(sine * sine + cosine * cosine, &exponent[threadIdx.x]);
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < 256; ++i) total += whole[i] + fraction[i];
  total *= roundf(ldexpf(mantissa, exponent[threadIdx.x]));
  const float rstd = rsqrtf(total / H + eps);
  __syncthreads();
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    input[row + column] = __float2bfloat16(h * rstd * __bfloat162float(weight[column]));
  }
}
