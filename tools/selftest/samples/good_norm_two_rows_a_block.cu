/* kopt: 1
family: thread_utilization
note: "two rows a block, each by half of its warps"
where: "B <= 8"
launch:
  - kernel: norm_two_rows_a_block
    grid: ceil_div(B, 2)
    block: 128, 2
    args: [input, residual, weight, B, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: threads (t, y) of block x own row 2 x + y.

#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void norm_two_rows_a_block(__nv_bfloat16* input, __nv_bfloat16* residual,
                                                 const __nv_bfloat16* weight, int B, int H,
                                                 float eps) {
  __shared__ float sums[2][4];
  const int half = threadIdx.y, row = blockIdx.x * 2 + half;
  const bool has_row = row < B;
  __nv_bfloat16* x = input + size_t(has_row ? row : 0) * H;
  __nv_bfloat16* r = residual + size_t(has_row ? row : 0) * H;
  float squares = 0.0f;
  if (has_row) {
    for (int c = threadIdx.x; c < H; c += 128) {
      const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
      squares += h * h;
    }
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) sums[half][threadIdx.x / 32] = squares;
  __syncthreads();
  if (!has_row) return;
  const float total = sums[half][0] + sums[half][1] + sums[half][2] + sums[half][3];
  const float rstd = rsqrtf(total / H + eps);
  for (int c = threadIdx.x; c < H; c += 128) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
