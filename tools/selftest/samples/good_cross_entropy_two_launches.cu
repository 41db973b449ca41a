/* kopt: 1
family: other
note: "a warp a row, then one warp for the mean"
scratch:
  terms: {dtype: float32, shape: N}
launch:
  - kernel: row_losses
    grid: N
    block: 32
    args: [logits, labels, terms, C]
  - kernel: mean_loss
    grid: 1
    block: 32
    args: [terms, loss, N, weight]
*/
// sample: kernel=cross_entropy_small status=passed level=full
// The output is one element of all rows.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void row_losses(const float* logits, const long long* labels, float* terms,
                                      int C) {
  const float* row = logits + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int i = threadIdx.x; i < C; i += 32) sum += expf(row[i] - most);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) terms[blockIdx.x] = logf(sum) + most - row[labels[blockIdx.x]];
}

extern "C" __global__ void mean_loss(const float* terms, float* loss, int N, float weight) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < N; i += 32) sum += terms[i];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) loss[0] = sum / N * weight;
}
