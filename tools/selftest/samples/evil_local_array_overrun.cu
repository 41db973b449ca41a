/* kopt: 1
family: other
note: "one value more than the array of a thread holds"
launch:
  - kernel: fused_add_rmsnorm
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=out_of_bounds level=quick says=local
// Sixteen values a thread in an array for fifteen: what lies behind it is anything.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sum += h * h;
  }
  float squares[15];
  int count = 0;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    squares[count++] = h * h;  // <- here
  }
  float again = 0.0f;
  for (int i = 0; i < count; ++i) again += squares[i];  // <- here
  partial[threadIdx.x] = fmaxf(sum, again);
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
