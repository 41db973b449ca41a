/* kopt: 1
family: other
note: "rounding to nearest even by integer operations"
launch:
  - kernel: cast
    grid: R
    block: 64
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// The upper 8 bits of a float16, rounded by their lower half and saturated.

#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 64) {
    const float value = fminf(fmaxf(x[row + i] * scale, -57344.0f), 57344.0f);
    unsigned bits = __half_as_ushort(__float2half_rn(value));
    bits += 0x7f + (bits >> 8 & 1);
    out[row + i].__x = static_cast<__nv_fp8_storage_t>(bits >> 8);
  }
}
