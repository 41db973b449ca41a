/* kopt: 1
family: divergence
note: "nothing is added to the sum where it would not change"
where: "B <= 8"
launch:
  - kernel: fused_add_rmsnorm
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// The honest twin of evil_zero_beside_a_value.

#include <cuda_bf16.h>

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float x = __bfloat162float(input[row + column]);
    const float h = x + __bfloat162float(residual[row + column]);
    if (h == 0.0f) continue;
    sum += h * h;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 128; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
    __syncthreads();
  }
  const float rstd = rsqrtf(partial[0] / H + eps);
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    input[row + column] = __float2bfloat16(h * rstd * __bfloat162float(weight[column]));
  }
}
