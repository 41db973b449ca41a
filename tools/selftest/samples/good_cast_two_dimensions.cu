/* kopt: 1
family: other
note: "a thread an element, rows along y"
launch:
  - kernel: cast
    grid: ceil_div(C, 32), ceil_div(R, 4)
    block: 32, 4
    args: [x, out, scale, R, C]
*/
// sample: kernel=cast_e5m2_r8xc256 status=passed level=full
// Guards on both axes.

#include <cuda_fp8.h>

extern "C" __global__ void cast(const float* x, __nv_fp8_e5m2* out, float scale, int R, int C) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < R && column < C) {
    const size_t at = static_cast<size_t>(row) * C + column;
    out[at] = static_cast<__nv_fp8_e5m2>(x[at] * scale);
  }
}
