/* kopt: 1
family: other
note: "two chains a thread, unrolled"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Independent maxima and sums hide latency.

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
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
  int i = threadIdx.x;
#pragma unroll 4
  for (; i + 32 < C; i += 64) {
    most[0] = fmaxf(most[0], row[i]);
    most[1] = fmaxf(most[1], row[i + 32]);
  }
  if (i < C) most[0] = fmaxf(most[0], row[i]);
  const float all = warp_max(fmaxf(most[0], most[1]));
  for (i = threadIdx.x; i + 32 < C; i += 64) {
    sum[0] += __expf(row[i] - all);
    sum[1] += __expf(row[i + 32] - all);
  }
  if (i < C) sum[0] += __expf(row[i] - all);
  const float inverse = 1.0f / warp_sum(sum[0] + sum[1]);
  for (i = threadIdx.x; i < C; i += 32)
    out[static_cast<size_t>(blockIdx.x) * C + i] = __expf(row[i] - all) * inverse;
}
