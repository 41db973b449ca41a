/* kopt: 1
family: other
note: "four rows a block, a warp each"
launch:
  - kernel: softmax
    grid: ceil_div(R, 4)
    block: 32, 4
    args: [x, out, R, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// threadIdx.y is the row; no shared memory.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out, int R,
                                   int C) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= R) return;
  const float* from = x + static_cast<size_t>(row) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 32) most = fmaxf(most, __ldg(from + i));
  most = warp_max(most);
  for (int i = threadIdx.x; i < C; i += 32) sum += __expf(__ldg(from + i) - most);
  const float inverse = __frcp_rn(warp_sum(sum));
  for (int i = threadIdx.x; i < C; i += 32)
    __stcs(out + static_cast<size_t>(row) * C + i, __expf(__ldg(from + i) - most) * inverse);
}
