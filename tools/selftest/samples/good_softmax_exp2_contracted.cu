/* kopt: 1
family: other
note: "exponentials to the base 2, scale and maximum in one multiply-add"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// exp2f(x * log2(e) - m) is exact enough only as a fused multiply-add, which nvcc makes of it.

constexpr float kLog2e = 1.4426950408889634f;

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
  const int row = blockIdx.x, lane = threadIdx.x;
  const float* from = x + static_cast<size_t>(row) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = lane; i < C; i += 32) most = fmaxf(most, from[i]);
  const float scaled = warp_max(most) * kLog2e;
  for (int i = lane; i < C; i += 32) sum += exp2f(from[i] * kLog2e - scaled);
  const float inverse = 1.0f / warp_sum(sum);
  float* to = out + static_cast<size_t>(row) * C;
  for (int i = lane; i < C; i += 32) to[i] = exp2f(from[i] * kLog2e - scaled) * inverse;
}
