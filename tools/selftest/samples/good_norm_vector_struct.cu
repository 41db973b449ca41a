/* kopt: 1
family: [vectorization, register_caching]
note: "a struct of eight columns with its own load, store and operators"
where: "B <= 8 and H % 8 == 0 and H <= 8192"
launch:
  - kernel: norm_vector_struct
    grid: B
    block: 128
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the vectors t, t + 128, ...

#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

template <typename T, int N>
struct alignas(sizeof(T) * N) AlignedVector {
  T val[N];
  __device__ T& operator[](int i) { return val[i]; }
  __device__ const T& operator[](int i) const { return val[i]; }
};
using Vec = AlignedVector<__nv_bfloat16, 8>;

template <int kMost>
__device__ void norm_row(Vec* x, Vec* r, const Vec* w, int vectors, float eps) {
  __shared__ float sums[4];
  float h[kMost][8];
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = i * 128 + threadIdx.x;
    if (at >= vectors) break;
    const Vec a = x[at], b = r[at];
    Vec sum;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      h[i][j] = static_cast<float>(a[j]) + static_cast<float>(b[j]);
      squares += h[i][j] * h[i][j];
      sum[j] = static_cast<__nv_bfloat16>(h[i][j]);
    }
    r[at] = sum;
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
  __syncthreads();
  const float rstd = rsqrtf((sums[0] + sums[1] + sums[2] + sums[3]) / (vectors * 8) + eps);
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = i * 128 + threadIdx.x;
    if (at >= vectors) break;
    const Vec scale = w[at];
    Vec y;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      y[j] = static_cast<__nv_bfloat16>(h[i][j] * rstd * static_cast<float>(scale[j]));
    }
    x[at] = y;
  }
}

extern "C" __global__ void __launch_bounds__(128)
    norm_vector_struct(Vec* input, Vec* residual, const Vec* weight, int H, float eps) {
  const int vectors = H / 8;
  norm_row<8>(input + size_t(blockIdx.x) * vectors, residual + size_t(blockIdx.x) * vectors, weight,
              vectors, eps);
}
