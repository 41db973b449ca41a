/* kopt: 1
family: other
note: "pairs of float16, squares of differences from the first value"
where: "C % 2 == 0"
launch:
  - kernel: layer_norm
    grid: R
    block: 64
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Two elements a load and a store.

#include <cuda_fp16.h>

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  __shared__ float2 partial[2];
  const __half2* pairs = reinterpret_cast<const __half2*>(x + static_cast<size_t>(blockIdx.x) * C);
  float2 sums = {0.0f, 0.0f};
  const float pivot = __low2float(pairs[0]);  // against cancellation in the squares
  for (int i = threadIdx.x; i < C / 2; i += 64) {
    const float2 v = __half22float2(pairs[i]);
    const float a = v.x - pivot, b = v.y - pivot;
    sums.x += a + b;
    sums.y += a * a + b * b;
  }
  for (int step = 16; step > 0; step /= 2) {
    sums.x += __shfl_down_sync(0xffffffffu, sums.x, step);
    sums.y += __shfl_down_sync(0xffffffffu, sums.y, step);
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sums;
  __syncthreads();
  const float shift = (partial[0].x + partial[1].x) / C;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < C / 2; i += 64) {
    const float2 v = __half22float2(pairs[i]);
    const float a = v.x - pivot - shift, b = v.y - pivot - shift;
    squares += a * a + b * b;
  }
  for (int step = 16; step > 0; step /= 2)
    squares += __shfl_down_sync(0xffffffffu, squares, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32].y = squares;
  __syncthreads();
  const float rstd = rsqrtf((partial[0].y + partial[1].y) / C + eps);
  __half2* to = reinterpret_cast<__half2*>(out + static_cast<size_t>(blockIdx.x) * C);
  for (int i = threadIdx.x; i < C / 2; i += 64) {
    const float2 v = __half22float2(pairs[i]);
    const float2 g = __half22float2(reinterpret_cast<const __half2*>(gamma)[i]);
    const float2 b = __half22float2(reinterpret_cast<const __half2*>(beta)[i]);
    to[i] = __floats2half2_rn((v.x - pivot - shift) * rstd * g.x + b.x,
                              (v.y - pivot - shift) * rstd * g.y + b.y);
  }
}
