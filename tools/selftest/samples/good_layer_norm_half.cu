/* kopt: 1
family: other
note: "float16 in and out, float32 between"
launch:
  - kernel: layer_norm
    grid: R
    block: 128
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// A block a row; the sums in float32, one rounding to float16 at the end.

#include <cuda_fp16.h>

__device__ float block_sum(float value, float* partial) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();  // the last sum has been read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return partial[0] + partial[1] + partial[2] + partial[3];
}

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  __shared__ float partial[4];
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 128) sum += __half2float(x[row + i]);
  const float mean = block_sum(sum, partial) / C;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < C; i += 128) {
    const float d = __half2float(x[row + i]) - mean;
    squares += d * d;
  }
  const float rstd = rsqrtf(block_sum(squares, partial) / C + eps);
  for (int i = threadIdx.x; i < C; i += 128) {
    const float normed = (__half2float(x[row + i]) - mean) * rstd;
    out[row + i] = __float2half(normed * __half2float(gamma[i]) + __half2float(beta[i]));
  }
}
