/* kopt: 1
family: other
note: "the row as float32 in shared memory"
launch:
  - kernel: layer_norm
    grid: R
    block: 64
    smem: 4 * C
    args: [x, gamma, beta, out, C, eps]
*/
// sample: kernel=layer_norm_fp16_r8xc512 status=passed level=full
// Loaded and converted once.

#include <cuda_fp16.h>

__device__ float block_sum(float value) {
  __shared__ float partial[2];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return partial[0] + partial[1];
}

extern "C" __global__ void layer_norm(const __half* x, const __half* gamma, const __half* beta,
                                      __half* out, int C, float eps) {
  extern __shared__ float kept[];
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < C; i += 64) sum += kept[i] = __half2float(x[row + i]);
  const float mean = block_sum(sum) / C;
  for (int i = threadIdx.x; i < C; i += 64) {
    kept[i] -= mean;
    squares += kept[i] * kept[i];
  }
  const float rstd = rsqrtf(block_sum(squares) / C + eps);
  for (int i = threadIdx.x; i < C; i += 64)
    out[row + i] =
        __float2half(kept[i] * rstd * __half2float(gamma[i]) + __half2float(beta[i]));
}
