/* kopt: 1
family: other
note: "the upper byte of a float16"
launch:
  - kernel: cast
    grid: R
    block: 64
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=incorrect level=quick
// The other byte is cut off, not rounded.

#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 64) {
    const unsigned short bits = __half_as_ushort(__float2half(x[row + i] * scale));
    out[row + i].__x = static_cast<unsigned char>(bits >> 8);
  }
}
