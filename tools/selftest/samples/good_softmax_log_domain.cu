/* kopt: 1
family: other
note: "the logarithm of the sum is taken off"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// exp(x - most - log(sum)): no division.

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
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int i = threadIdx.x; i < C; i += 32) sum += expf(row[i] - most);
  const float shift = logf(warp_sum(sum));
  for (int i = threadIdx.x; i < C; i += 32)
    out[static_cast<size_t>(blockIdx.x) * C + i] = expf((row[i] - most) - shift);
}
