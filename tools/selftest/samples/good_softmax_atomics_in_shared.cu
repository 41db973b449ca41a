/* kopt: 1
family: other
note: "maximum and sum by atomics in shared memory"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Four warps add their sums in any order.

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
  __shared__ int most_bits;
  __shared__ float sum;
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  if (threadIdx.x == 0) {
    most_bits = INT_MIN;
    sum = 0.0f;
  }
  __syncthreads();
  float mine = -INFINITY;
  for (int i = threadIdx.x; i < C; i += 128) mine = fmaxf(mine, row[i] + 0.0f);
  mine = warp_max(mine);
  const int bits = __float_as_int(mine);
  if (threadIdx.x % 32 == 0) atomicMax(&most_bits, bits ^ ((bits >> 31) & 0x7fffffff));
  __syncthreads();
  const float most = __int_as_float(most_bits ^ ((most_bits >> 31) & 0x7fffffff));
  mine = 0.0f;
  for (int i = threadIdx.x; i < C; i += 128) mine += __expf(row[i] - most);
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) atomicAdd(&sum, mine);
  __syncthreads();
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = __expf(row[i] - most) / sum;
}
