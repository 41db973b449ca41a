/* kopt: 1
family: other
note: "structs with padding, copied whole"
launch:
  - kernel: softmax
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// The bytes between the members are loaded and stored, and mean nothing.

struct Partial {
  float most;
  double sum;  // behind 4 bytes of padding
};

__device__ Partial merged(const Partial& a, const Partial& b) {
  const float most = fmaxf(a.most, b.most);
  return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  __shared__ Partial partials[128];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -1e30f, sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += 128) {
    const float larger = fmaxf(most, row[i]);
    sum = sum * expf(most - larger) + expf(row[i] - larger);
    most = larger;
  }
  partials[threadIdx.x].most = most;
  partials[threadIdx.x].sum = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const Partial mine = partials[threadIdx.x], other = partials[threadIdx.x + half];
      partials[threadIdx.x] = merged(mine, other);
    }
    __syncthreads();
  }
  const Partial all = partials[0];
  for (int i = threadIdx.x; i < C; i += 128)
    out[static_cast<size_t>(blockIdx.x) * C + i] = expf(row[i] - all.most) / float(all.sum);
}
