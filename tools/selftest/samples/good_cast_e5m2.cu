/* kopt: 1
family: other
note: "the hardware's conversion, four values a thread"
launch:
  - kernel: cast
    grid: R
    block: 64
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// A product, and one rounding that saturates.

#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 64) out[row + i] = __nv_fp8_e5m2(x[row + i] * scale);
}
