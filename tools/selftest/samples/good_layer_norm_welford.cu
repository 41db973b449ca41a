/* kopt: 1
family: algebra
note: "mean and variance in one pass by Welford's formula, merged over the lanes"
where: "true"
launch:
  - kernel: layer_norm_welford
    grid: ceil_div(R, 4)
    block: 32, 4
    args: [x, gamma, beta, out, R, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Mapping: warp y of block x owns row 4 x + y.

#include <cuda_fp16.h>

struct Moments {
  float mean = 0.0f, squares = 0.0f, count = 0.0f;
  __device__ void add(float x) {
    count += 1.0f;
    const float delta = x - mean;
    mean += delta / count;
    squares += delta * (x - mean);
  }
  __device__ void merge(float other_mean, float other_squares, float other_count) {
    const float total = count + other_count;
    if (total == 0.0f) return;
    const float delta = other_mean - mean;
    mean += delta * (other_count / total);
    squares += other_squares + delta * delta * (count * other_count / total);
    count = total;
  }
};

extern "C" __global__ void layer_norm_welford(const __half* x, const __half* gamma,
                                              const __half* beta, __half* out, int R, int C,
                                              float eps) {
  const int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= R) return;
  Moments all;
  for (int c = threadIdx.x; c < C; c += 32) all.add(__half2float(x[size_t(row) * C + c]));
  for (int d = 16; d > 0; d /= 2) {
    all.merge(__shfl_xor_sync(~0u, all.mean, d), __shfl_xor_sync(~0u, all.squares, d),
              __shfl_xor_sync(~0u, all.count, d));
  }
  const float scale = rsqrtf(all.squares / C + eps);
  for (int c = threadIdx.x; c < C; c += 32) {
    const float y = (__half2float(x[size_t(row) * C + c]) - all.mean) * scale;
    out[size_t(row) * C + c] =
        __float2half_rn(y * __half2float(gamma[c]) + __half2float(beta[c]));
  }
}
