/* kopt: 1
family: other
note: "rounded to float16 on the way"
launch:
  - kernel: cast
    grid: R
    block: 64
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// Twice rounded: one step off beside a tie.

#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 64) {
    const float scaled = fminf(fmaxf(x[row + i] * scale, -60000.0f), 60000.0f);
    out[row + i] = __nv_fp8_e5m2(__float2half(scaled));
  }
}
