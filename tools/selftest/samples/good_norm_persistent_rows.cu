/* kopt: 1
family: persistent
note: "a few blocks walk over the rows; shared sums are reused behind barriers"
where: "B <= 8"
launch:
  - kernel: norm_persistent_rows
    grid: min(B, 3)
    block: 256
    args: [input, residual, weight, B, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns rows b, b + 3, ...

#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void norm_persistent_rows(__nv_bfloat16* input, __nv_bfloat16* residual,
                                                const __nv_bfloat16* weight, int B, int H,
                                                float eps) {
  __shared__ float sums[8];
  for (int row = blockIdx.x; row < B; row += gridDim.x) {
    __nv_bfloat16* x = input + size_t(row) * H;
    __nv_bfloat16* r = residual + size_t(row) * H;
    float squares = 0.0f;
    for (int c = threadIdx.x; c < H; c += 256) {
      const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
      squares += h * h;
    }
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < 8; ++w) total += sums[w];
    const float rstd = rsqrtf(total / H + eps);
    for (int c = threadIdx.x; c < H; c += 256) {
      const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
      r[c] = __float2bfloat16(h);
      x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
    }
    __syncthreads();  // the sums are written again in the next turn
  }
}
