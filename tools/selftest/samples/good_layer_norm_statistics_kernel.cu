/* kopt: 1
family: other
note: "mean and rstd in scratch"
scratch:
  stats: {dtype: float32, shape: "R, 2"}
launch:
  - kernel: statistics
    grid: R
    block: 32
    args: [x, stats, C, eps]
  - kernel: apply
    grid: R
    block: 128
    args: [x, gamma, beta, stats, out, C]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Two launches.

#include <cuda_fp16.h>

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void statistics(const __half* x, float* stats, int C, float eps) {
  const __half* row = x + static_cast<size_t>(blockIdx.x) * C;
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < C; i += 32) sum += __half2float(row[i]);
  const float mean = warp_sum(sum) / C;
  for (int i = threadIdx.x; i < C; i += 32) {
    const float d = __half2float(row[i]) - mean;
    squares += d * d;
  }
  squares = warp_sum(squares);
  if (threadIdx.x < 2)
    stats[2 * blockIdx.x + threadIdx.x] = threadIdx.x == 0 ? mean : rsqrtf(squares / C + eps);
}

extern "C" __global__ void apply(const __half* x, const __half* gamma, const __half* beta,
                                 const float* stats, __half* out, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  const float mean = stats[2 * blockIdx.x], rstd = stats[2 * blockIdx.x + 1];
  for (int i = threadIdx.x; i < C; i += blockDim.x) {
    const float normed = (__half2float(x[row + i]) - mean) * rstd;
    out[row + i] = __float2half(normed * __half2float(gamma[i]) + __half2float(beta[i]));
  }
}
