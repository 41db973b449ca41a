/* kopt: 1
family: other
note: "four values a load, four bytes a store"
where: "C % 4 == 0"
launch:
  - kernel: cast
    grid: R
    block: 32
    args: [x, out, scale, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// Rows of a multiple of four values.

#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int C) {
  const float4* row = reinterpret_cast<const float4*>(x + static_cast<size_t>(blockIdx.x) * C);
  __nv_fp8x4_e5m2* to =
      reinterpret_cast<__nv_fp8x4_e5m2*>(out + static_cast<size_t>(blockIdx.x) * C);
  for (int i = threadIdx.x; i < C / 4; i += 32) {
    const float4 v = row[i];
    to[i] = __nv_fp8x4_e5m2(make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale));
  }
}
