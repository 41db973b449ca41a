/* kopt: 1
family: other
note: "one warp for maxima, then all for sums"
launch:
  - kernel: softmax
    grid: R
    block: 96
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Warps take different branches; barriers stand outside of them.

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
  __shared__ float most, sums[3];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    float mine = -INFINITY;
    for (int i = lane; i < C; i += 32) mine = fmaxf(mine, row[i]);
    mine = warp_max(mine);
    if (lane == 0) most = mine;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 96) sum += __expf(row[i] - most);
  sum = warp_sum(sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = sums[0] + sums[1] + sums[2];
  for (int i = threadIdx.x; i < C; i += 96)
    out[static_cast<size_t>(blockIdx.x) * C + i] = __expf(row[i] - most) / sum;
}
