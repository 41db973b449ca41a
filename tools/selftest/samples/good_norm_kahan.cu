/* kopt: 1
family: other
note: "compensated sums a thread, protected from fast math by intrinsics"
where: "B <= 8"
launch:
  - kernel: norm_kahan
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 256, ...

#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

struct Compensated {
  float sum = 0.0f, rest = 0.0f;
  __device__ Compensated& operator+=(float x) {
    const float y = __fsub_rn(x, rest), t = __fadd_rn(sum, y);
    rest = __fsub_rn(__fsub_rn(t, sum), y);
    sum = t;
    return *this;
  }
};

extern "C" __global__ void norm_kahan(__nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float sums[8];
  __nv_bfloat16* x = input + size_t(blockIdx.x) * H;
  __nv_bfloat16* r = residual + size_t(blockIdx.x) * H;
  Compensated squares;
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    squares += __fmul_rn(h, h);
  }
  const float mine = warp_sum(squares.sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = mine;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < 8; ++w) total += sums[w];
  const float rstd = rsqrtf(total / H + eps);
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
