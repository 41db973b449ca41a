/* kopt: 1
family: other
note: "the row in dynamic shared memory"
launch:
  - kernel: softmax
    grid: R
    block: 64
    smem: 4 * C + 16
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Exponentials are computed once and kept.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  extern __shared__ float kept[];
  __shared__ float partial[2];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 64) {
    kept[i] = row[i];
    most = fmaxf(most, kept[i]);
  }
  most = warp_max(most);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = most;
  __syncthreads();
  most = fmaxf(partial[0], partial[1]);
  __syncthreads();
  for (int i = threadIdx.x; i < C; i += 64) sum += kept[i] = __expf(kept[i] - most);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  const float inverse = 1.0f / (partial[0] + partial[1]);
  for (int i = threadIdx.x; i < C; i += 64)
    out[static_cast<size_t>(blockIdx.x) * C + i] = kept[i] * inverse;
}
