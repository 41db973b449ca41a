/* kopt: 1
family: other
note: "powers of two from a __device__ constexpr table"
launch:
  - kernel: cast
    grid: R
    block: 64
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// The exponent picks a power of two; the products are exact.

#include <cuda_fp8.h>

__device__ constexpr float kPowers[5] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f};
__device__ const float kInverse[5] = {1.0f, 0.5f, 0.25f, 0.125f, 0.0625f};

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 64) {
    const int which = i % 5;
    out[row + i] = __nv_fp8_e5m2(x[row + i] * kPowers[which] * scale * kInverse[which]);
  }
}
