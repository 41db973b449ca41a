/* kopt: 1
family: other
note: "three passes over a row"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// The textbook's softmax.

__device__ float reduce(float value, float* partial, bool largest) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, step);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float total = partial[0];
  for (int i = 1; i < 4; ++i) total = largest ? fmaxf(total, partial[i]) : total + partial[i];
  return total;
}

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  __shared__ float partial[4];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += 128) most = fmaxf(most, float(row[i]));
  most = reduce(most, partial, true);
  for (int i = threadIdx.x; i < C; i += 128) sum += __expf(row[i] - most);
  sum = reduce(sum, partial, false);
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = __expf(row[i] - most) / sum;
}
