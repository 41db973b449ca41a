/* kopt: 1
family: other
note: "one pass for maximum and sum"
launch:
  - kernel: softmax
    grid: R
    block: 64
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Each thread carries a maximum and a sum relative to it; a tree in shared memory merges them.

struct Running {
  float most, sum;
};

__device__ Running merged(Running a, Running b) {
  const float most = fmaxf(a.most, b.most);
  return {most, a.sum * __expf(a.most - most) + b.sum * __expf(b.most - most)};
}

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  __shared__ float most[64], sum[64];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  Running mine = {-1e30f, 0.0f};
  for (int i = threadIdx.x; i < C; i += 64) mine = merged(mine, {row[i], 1.0f});
  most[threadIdx.x] = mine.most;
  sum[threadIdx.x] = mine.sum;
  __syncthreads();
  for (int half = 32; half > 0; half >>= 1) {
    if (threadIdx.x < half) {
      const Running other = {most[threadIdx.x + half], sum[threadIdx.x + half]};
      mine = merged(mine, other);
      most[threadIdx.x] = mine.most;
      sum[threadIdx.x] = mine.sum;
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < C; i += 64)
    out[static_cast<size_t>(blockIdx.x) * C + i] = __expf(row[i] - most[0]) / sum[0];
}
