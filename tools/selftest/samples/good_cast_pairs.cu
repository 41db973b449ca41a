/* kopt: 1
family: other
note: "two values a conversion"
launch:
  - kernel: cast
    grid: R
    block: 32
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// A pair of bytes a store; rows of an odd length end with one byte.

#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = 2 * threadIdx.x; i < C; i += 64) {
    const float second = i + 1 < C ? x[row + i + 1] * scale : 0.0f;
    const __nv_fp8x2_storage_t both = __nv_cvt_float2_to_fp8x2(
        make_float2(x[row + i] * scale, second), __NV_SATFINITE, __NV_E5M2);
    out[row + i].__x = static_cast<__nv_fp8_storage_t>(both & 0xff);
    if (i + 1 < C) out[row + i + 1].__x = static_cast<__nv_fp8_storage_t>(both >> 8);
  }
}
