/* kopt: 1
family: other
note: "eight float16 a load, the row in registers"
where: "C % 8 == 0 and C <= 1024"
launch:
  - kernel: layer_norm
    grid: R
    block: 64
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Rows of up to 1,024 values, a multiple of eight.

#include <cuda_fp16.h>

struct alignas(16) Eight {
  __half2 pairs[4];
};

__device__ float block_sum(float value, float* partial) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return partial[0] + partial[1];
}

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  __shared__ float partial[2][2];
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  float values[2][8];
  float sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const int first = (step * 64 + threadIdx.x) * 8;
    Eight loaded{};
    if (first < C) loaded = *reinterpret_cast<const Eight*>(x + row + first);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 pair = __half22float2(loaded.pairs[k]);
      values[step][2 * k] = pair.x;
      values[step][2 * k + 1] = pair.y;
      sum += pair.x + pair.y;
    }
  }
  const float mean = block_sum(sum, partial[0]) / C;
#pragma unroll
  for (int step = 0; step < 2; ++step)
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      values[step][k] -= mean;
      if ((step * 64 + threadIdx.x) * 8 < C) squares += values[step][k] * values[step][k];
    }
  const float rstd = rsqrtf(block_sum(squares, partial[1]) / C + eps);
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const int first = (step * 64 + threadIdx.x) * 8;
    if (first >= C) continue;
    Eight stored;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int i = first + 2 * k;
      stored.pairs[k] = __floats2half2_rn(
          values[step][2 * k] * rstd * __half2float(gamma[i]) + __half2float(beta[i]),
          values[step][2 * k + 1] * rstd * __half2float(gamma[i + 1]) + __half2float(beta[i + 1]));
    }
    *reinterpret_cast<Eight*>(out + row + first) = stored;
  }
}
