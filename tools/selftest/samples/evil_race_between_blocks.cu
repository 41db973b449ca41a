/* kopt: 1
family: other
note: "two blocks share a row and read each other's sum without any order between them"
scratch: {sums: {dtype: float32, shape: "B, 2", init: zero}}
launch:
  - kernel: fused_add_rmsnorm
    grid: 2, B
    block: 256
    args: [input, residual, weight, sums, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=data_race level=quick says=sums
// The other block may have run before, or may run later: no barrier spans blocks of a launch.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, float* sums, int H,
                                             float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.y) * H + blockIdx.x * (H / 2);
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H / 2; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sum += h * h;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 128; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.y * 2 + blockIdx.x] = partial[0];  // <- here
  __syncthreads();
  const float total = sums[blockIdx.y * 2] + sums[blockIdx.y * 2 + 1];  // <- here
  const float rstd = rsqrtf(total / H + eps);
  for (int column = threadIdx.x; column < H / 2; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    const float scale = __bfloat162float(weight[blockIdx.x * (H / 2) + column]);
    input[row + column] = __float2bfloat16(h * rstd * scale);
  }
}
