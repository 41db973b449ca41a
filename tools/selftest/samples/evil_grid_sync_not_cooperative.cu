/* kopt: 1
family: other
note: "blocks meet at a barrier of the grid that the launch does not provide for"
scratch: {sums: {dtype: float32, shape: "B, 2"}}
launch:
  - kernel: fused_add_rmsnorm
    grid: 2, B
    block: 256
    args: [input, residual, weight, sums, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=crash level=quick says=cooperative
// `cooperative: true` is missing.

#include <cooperative_groups.h>
#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, float* sums, int H,
                                             float eps) {
  if (threadIdx.x == 0) sums[blockIdx.y * 2 + blockIdx.x] = 0.0f;
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) input[0] = __float2bfloat16(sums[0] + eps);
}
