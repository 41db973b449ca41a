/* kopt: 1
family: other
note: "a flag that nobody has set decides"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=uninitialized_read level=quick
// Whether the row was done before is read from shared memory that nothing has written.

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  __shared__ float sums[4];
  __shared__ int done;
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 128) sum += expf(row[i]);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (done == 0) return;  // <- here
  const float total = sums[0] + sums[1] + sums[2] + sums[3];
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = expf(row[i]) / total;
}
