/* kopt: 1
family: other
note: "sums in float64 for the last digit"
where: "B <= 8"
launch:
  - kernel: norm_double_sum
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 256, ...

#include <cuda_bf16.h>

template <typename T>
__device__ T sum_over_warp(T v) {
  for (int d = 1; d < 32; d *= 2) v += __shfl_down_sync(~0u, v, d);
  return __shfl_sync(~0u, v, 0);
}

extern "C" __global__ void norm_double_sum(__nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, int H, float eps) {
  __shared__ double sums[8];
  __nv_bfloat16* x = input + size_t(blockIdx.x) * H;
  __nv_bfloat16* r = residual + size_t(blockIdx.x) * H;
  double squares = 0.0;
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const double h = double(__bfloat162float(x[c])) + double(__bfloat162float(r[c]));
    squares += h * h;
  }
  squares = sum_over_warp(squares);
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = squares;
  __syncthreads();
  double total = 0.0;
  for (double sum : sums) total += sum;
  const float rstd = static_cast<float>(rsqrt(total / H + double(eps)));
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
