/* kopt: 1
family: other
note: "a warp a row"
launch:
  - kernel: layer_norm
    grid: R
    block: 32
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Two sums over the row by shuffles alone.

#include <cuda_fp16.h>

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < C; i += 32) sum += __half2float(x[row + i]);
  const float mean = warp_sum(sum) / C;
  for (int i = threadIdx.x; i < C; i += 32) {
    const float d = __half2float(x[row + i]) - mean;
    squares += d * d;
  }
  const float rstd = rsqrtf(warp_sum(squares) / C + eps);
  for (int i = threadIdx.x; i < C; i += 32) {
    const float normed = (__half2float(x[row + i]) - mean) * rstd;
    out[row + i] = __float2half_rn(normed * __half2float(gamma[i]) + __half2float(beta[i]));
  }
}
