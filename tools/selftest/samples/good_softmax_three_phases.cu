/* kopt: 1
family: smem_tiling
note: "the textbook kernel: maximum, sum and quotient, each by a tree in shared memory"
where: "true"
launch:
  - kernel: softmax_three_phases
    grid: R
    block: 128
    smem: 512
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Mapping: block b owns row b.

#include <cfloat>

template <typename T, typename Op>
__device__ T tree(T value, T* shared, Op op) {
  const unsigned t = threadIdx.x;
  shared[t] = value;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s != 0; s /= 2) {
    if (t < s) shared[t] = op(shared[t], shared[t + s]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();  // the array is used again
  return result;
}

extern "C" __global__ void softmax_three_phases(const float* x, float* out, const int C) {
  extern __shared__ char raw[];
  float* shared = reinterpret_cast<float*>(raw);
  x += blockIdx.x * size_t(C);
  out += blockIdx.x * size_t(C);
  float most = -FLT_MAX;
  for (int c = threadIdx.x; c < C; c += blockDim.x) most = fmaxf(most, x[c]);
  most = tree(most, shared, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.f;
  for (int c = threadIdx.x; c < C; c += blockDim.x) sum += expf(x[c] - most);
  sum = tree(sum, shared, [](float a, float b) { return a + b; });
  for (int c = threadIdx.x; c < C; c += blockDim.x) out[c] = expf(x[c] - most) / sum;
}
