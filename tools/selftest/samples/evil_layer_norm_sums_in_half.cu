/* kopt: 1
family: other
note: "sums kept in float16"
launch:
  - kernel: layer_norm
    grid: R
    block: 32
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=incorrect level=quick
// A sum of hundreds of terms in float16 loses their last digits.

#include <cuda_fp16.h>

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  __half sum = __float2half(0.0f), squares = __float2half(0.0f);
  for (int i = threadIdx.x; i < C; i += 32) sum = __hadd(sum, x[row + i]);
  for (int step = 16; step > 0; step /= 2)
    sum = __hadd(sum, __shfl_xor_sync(0xffffffffu, sum, step));
  const float mean = __half2float(sum) / C;
  for (int i = threadIdx.x; i < C; i += 32) {
    const __half d = __float2half(__half2float(x[row + i]) - mean);
    squares = __hfma(d, d, squares);
  }
  for (int step = 16; step > 0; step /= 2)
    squares = __hadd(squares, __shfl_xor_sync(0xffffffffu, squares, step));
  const float rstd = rsqrtf(__half2float(squares) / C + eps);
  for (int i = threadIdx.x; i < C; i += 32) {
    const float normed = (__half2float(x[row + i]) - mean) * rstd;
    out[row + i] = __float2half(normed * __half2float(gamma[i]) + __half2float(beta[i]));
  }
}
