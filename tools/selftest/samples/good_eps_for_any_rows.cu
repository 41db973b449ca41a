/* kopt: 1
family: other
where: "H == 8192 or B == 8"
note: "an exact square root for many rows, an approximate one for few"
launch:
  - kernel: fused_add_rmsnorm
    grid: B
    block: 256
    args: [input, residual, weight, B, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b1024xh8192 status=passed level=full
// The honest twin of evil_eps_for_few_rows: two ways to the same result.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, int B, int H,
                                             float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sum += h * h;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 128; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
    __syncthreads();
  }
  const float square = partial[0] / H + eps;
  const float rstd = B > 128 ? 1.0f / sqrtf(square) : rsqrtf(square);
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    input[row + column] = __float2bfloat16(h * rstd * __bfloat162float(weight[column]));
  }
}
