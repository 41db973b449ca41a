/* kopt: 1
family: other
note: "the last block done reads sums that no fence has published"
scratch:
  sums: {dtype: float32, shape: "B, 2"}
  arrived: {dtype: int32, shape: B, init: zero}
launch:
  - kernel: fused_add_rmsnorm
    grid: 2, B
    block: 256
    args: [input, residual, weight, sums, arrived, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=data_race level=quick
// The counter says that the other block has arrived, not that its sum can be seen.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, float* sums, int* arrived,
                                             int H, float eps) {
  __shared__ float partial[256];
  __shared__ bool is_last;
  const size_t row = static_cast<size_t>(blockIdx.y) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H / 2; column += 256) {
    const size_t at = row + blockIdx.x * (H / 2) + column;
    const float h = add(input[at], residual[at]);
    sum += h * h;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 128; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.y * 2 + blockIdx.x] = partial[0];
    is_last = atomicAdd(&arrived[blockIdx.y], 1) == 1;
  }
  __syncthreads();
  if (!is_last) return;
  const float total = sums[blockIdx.y * 2] + sums[blockIdx.y * 2 + 1];  // <- here
  const float rstd = rsqrtf(total / H + eps);
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    input[row + column] = __float2bfloat16(h * rstd * __bfloat162float(weight[column]));
  }
}
