/* kopt: 1
family: other
note: "float64 throughout"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_fp64_r4xc200 status=passed level=full
// An exponential and a sum in float64.

__device__ double reduce(double value, double* partial, bool largest) {
  for (int step = 16; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, value, step);
    value = largest ? fmax(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  double total = partial[0];
  for (int i = 1; i < 4; ++i) total = largest ? fmax(total, partial[i]) : total + partial[i];
  return total;
}

extern "C" __global__ void softmax(const double* x, double* out, int C) {
  __shared__ double partial[4];
  const double* row = x + static_cast<size_t>(blockIdx.x) * C;
  double most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += 128) most = fmax(most, double(row[i]));
  most = reduce(most, partial, true);
  for (int i = threadIdx.x; i < C; i += 128) sum += exp(row[i] - most);
  sum = reduce(sum, partial, false);
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = exp(row[i] - most) / sum;
}
