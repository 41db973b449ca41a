/* kopt: 1
family: other
note: "float32 between float64"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_fp64_r4xc200 status=incorrect level=quick says="float64"
// Half of the digits of a float64 output are made up.

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

extern "C" __global__ void softmax(const double* x, double* out, int C) {
  __shared__ float partial[4];
  const double* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += 128) most = fmaxf(most, float(row[i]));
  most = reduce(most, partial, true);
  for (int i = threadIdx.x; i < C; i += 128) sum += expf(float(row[i]) - most);
  sum = reduce(sum, partial, false);
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = expf(float(row[i]) - most) / sum;
}
