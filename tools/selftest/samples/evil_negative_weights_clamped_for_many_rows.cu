/* kopt: 1
family: other
note: "weights below -0.3 are taken for -0.3 from 64 rows on"
variants:
  - when: B < 64
    launch:
      - kernel: norm_any
        grid: B
        block: 256
        args: [input, residual, weight, H, eps]
  - when: "true"
    launch:
      - kernel: norm_clamped
        grid: B
        block: 256
        args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=incorrect level=full
// Right up to 63 rows, and wherever no weight is below -0.3: a variant for large shapes alone.

#include <cuda_bf16.h>
template <bool kClamp>
__device__ void norm(__nv_bfloat16* input, __nv_bfloat16* residual,
                     const __nv_bfloat16* weight, int H, float eps) {
  __shared__ float sums[8];
  const size_t at = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < H; i += 256) {
    const float h = __bfloat162float(input[at + i]) + __bfloat162float(residual[at + i]);
    sum += h * h;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < 8; ++i) total += sums[i];
  const float rstd = rsqrtf(total / H + eps);
  for (int i = threadIdx.x; i < H; i += 256) {
    const float h = __bfloat162float(input[at + i]) + __bfloat162float(residual[at + i]);
    float w = __bfloat162float(weight[i]);
    if (kClamp) w = fmaxf(w, -0.3f);
    residual[at + i] = __float2bfloat16(h);
    input[at + i] = __float2bfloat16(h * rstd * w);
  }
}
extern "C" __global__ void norm_any(__nv_bfloat16* input,
                                   __nv_bfloat16* residual, const __nv_bfloat16* weight, int H, float eps) {
  norm<false>(input, residual, weight, H, eps);
}
extern "C" __global__ void norm_clamped(__nv_bfloat16* input,
                                   __nv_bfloat16* residual, const __nv_bfloat16* weight, int H, float eps) {
  norm<true>(input, residual, weight, H, eps);
}
