/* kopt: 1
family: other
note: "three blocks take all rows in turn"
launch:
  - kernel: softmax
    grid: 3
    block: 64
    args: [x, out, R, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Shared memory is used again for each row, behind a barrier.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void softmax(const float* x, float* out, int R, int C) {
  __shared__ float partial[2][2];
  const int warp = threadIdx.x / 32;
  for (int r = blockIdx.x; r < R; r += gridDim.x) {
    const float* row = x + static_cast<size_t>(r) * C;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 64) most = fmaxf(most, row[i]);
    most = warp_max(most);
    if (threadIdx.x % 32 == 0) partial[0][warp] = most;
    __syncthreads();
    most = fmaxf(partial[0][0], partial[0][1]);
    for (int i = threadIdx.x; i < C; i += 64) sum += __expf(row[i] - most);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[1][warp] = sum;
    __syncthreads();
    const float inverse = 1.0f / (partial[1][0] + partial[1][1]);
    for (int i = threadIdx.x; i < C; i += 64)
      out[static_cast<size_t>(r) * C + i] = __expf(row[i] - most) * inverse;
  }
}
