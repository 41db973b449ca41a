/* kopt: 1
family: other
note: "a float4 of which three words count"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Maximum, sum and count; the fourth word is never written and never used.

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  __shared__ float4 partials[4];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -1e30f, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 128) most = fmaxf(most, row[i]);
  for (int step = 16; step > 0; step /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
  for (int i = threadIdx.x; i < C; i += 128) sum += expf(row[i] - most);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) {
    float4& mine = partials[threadIdx.x / 32];
    mine.x = most;
    mine.y = sum;
    mine.z = 1.0f;
  }
  __syncthreads();
  float all = -1e30f, total = 0.0f, count = 0.0f;
  for (int i = 0; i < 4; ++i) all = fmaxf(all, partials[i].x);
  for (int i = 0; i < 4; ++i) {
    const float4 one = partials[i];
    total += one.y * expf(one.x - all);
    count += one.z;
  }
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = expf(row[i] - all) / total * (count / 4.0f);
}
