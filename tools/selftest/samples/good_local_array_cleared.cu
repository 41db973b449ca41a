/* kopt: 1
family: other
note: "the sums of a thread in memory of its own that it clears first"
launch:
  - kernel: fused_add_rmsnorm
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// The index is not known when it is compiled, so that the array lies in local memory.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  volatile float sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sums[column >> 8 & 3] = sums[column >> 8 & 3] + h * h;
  }
  partial[threadIdx.x] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < 256; ++i) total += partial[i];
  const float rstd = rsqrtf(total / H + eps);
  __syncthreads();
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    input[row + column] = __float2bfloat16(h * rstd * __bfloat162float(weight[column]));
  }
}
