/* kopt: 1
family: other
note: "all elements in a grid-stride loop"
launch:
  - kernel: cast
    grid: 4
    block: 128
    args: [x, out, scale, R, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// Indices of 64 bits.

#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* __restrict__ x, __nv_fp8_e5m2* __restrict__ out,
                                float scale, int R, int C) {
  const long long count = static_cast<long long>(R) * C;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += stride)
    out[i] = __nv_fp8_e5m2(x[i] * scale);
}
