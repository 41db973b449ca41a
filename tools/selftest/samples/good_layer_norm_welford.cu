/* kopt: 1
family: other
note: "Welford's running mean and variance, merged by shuffles"
launch:
  - kernel: layer_norm
    grid: R
    block: 32
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// One pass over the row.

#include <cuda_fp16.h>

struct Moments {
  float count, mean, squares;
};

__device__ Moments merged(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float d = b.mean - a.mean;
  return {count, a.mean + d * b.count / count,
          a.squares + b.squares + d * d * a.count * b.count / count};
}

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < C; i += 32)
    mine = merged(mine, {1.0f, __half2float(x[row + i]), 0.0f});
  for (int step = 16; step > 0; step /= 2) {
    const Moments other = {__shfl_xor_sync(0xffffffffu, mine.count, step),
                           __shfl_xor_sync(0xffffffffu, mine.mean, step),
                           __shfl_xor_sync(0xffffffffu, mine.squares, step)};
    mine = merged(mine, other);
  }
  const float rstd = rsqrtf(mine.squares / C + eps);
  for (int i = threadIdx.x; i < C; i += 32) {
    const float normed = (__half2float(x[row + i]) - mine.mean) * rstd;
    out[row + i] = __float2half(fmaf(normed, __half2float(gamma[i]), __half2float(beta[i])));
  }
}
