/* kopt: 1
family: other
note: "the row in registers, its length a template's"
where: "C <= 512"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Rows of up to 512 values: sixteen a thread, what is beyond the row counts for nothing.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <int Steps>
__device__ __forceinline__ void one_row(const float* row, float* to, int C) {
  float values[Steps];
  float most = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    const int i = step * 32 + threadIdx.x;
    values[step] = i < C ? row[i] : -INFINITY;
    most = fmaxf(most, values[step]);
  }
  most = warp_max(most);
#pragma unroll
  for (int step = 0; step < Steps; ++step) sum += values[step] = __expf(values[step] - most);
  const float inverse = 1.0f / warp_sum(sum);
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    const int i = step * 32 + threadIdx.x;
    if (i < C) to[i] = values[step] * inverse;
  }
}

extern "C" __global__ void __launch_bounds__(32) softmax(const float* x, float* out, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  if (C <= 256) one_row<8>(x + row, out + row, C);
  else one_row<16>(x + row, out + row, C);
}
