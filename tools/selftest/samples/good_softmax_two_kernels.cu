/* kopt: 1
family: other
note: "statistics in one launch, results in the next"
scratch:
  stats: {dtype: float32, shape: "R, 2"}
launch:
  - kernel: statistics
    grid: R
    block: 32
    args: [x, stats, C]
  - kernel: results
    grid: ceil_div(C, 128), R
    block: 128
    args: [x, stats, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// The launches are ordered: scratch needs no flag.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void statistics(const float* x, float* stats, int C) {
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int i = threadIdx.x; i < C; i += 32) sum += __expf(row[i] - most);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) 
    reinterpret_cast<float2*>(stats)[blockIdx.x] = make_float2(most, 1.0f / sum);
}

extern "C" __global__ void results(const float* x, const float* stats, float* out, int C) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= C) return;
  const float2 own = reinterpret_cast<const float2*>(stats)[blockIdx.y];
  const size_t at = static_cast<size_t>(blockIdx.y) * C + i;
  out[at] = __expf(x[at] - own.x) * own.y;
}
