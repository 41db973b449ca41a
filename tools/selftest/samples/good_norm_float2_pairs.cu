/* kopt: 1
family: [packed_simd]
note: "pairs of columns, sums in float2, kept in shared memory as float2"
where: "B <= 8 and H % 2 == 0 and H <= 8192"
launch:
  - kernel: norm_float2_pairs
    grid: B
    block: 256
    smem: 4 * H
    args: [input, residual, weight, {int32: "H // 2"}, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the pairs t, t + 256, ...

#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void norm_float2_pairs(__nv_bfloat162* input, __nv_bfloat162* residual,
                                             const __nv_bfloat162* weight, int pairs, float eps) {
  extern __shared__ float2 kept[];
  __shared__ float sums[8];
  __nv_bfloat162* x = input + size_t(blockIdx.x) * pairs;
  __nv_bfloat162* r = residual + size_t(blockIdx.x) * pairs;
  float2 squares = make_float2(0.0f, 0.0f);
  for (int p = threadIdx.x; p < pairs; p += 256) {
    const float2 a = __bfloat1622float2(x[p]), b = __bfloat1622float2(r[p]);
    const float2 h = make_float2(a.x + b.x, a.y + b.y);
    kept[p] = h;
    squares.x = fmaf(h.x, h.x, squares.x);
    squares.y = fmaf(h.y, h.y, squares.y);
    r[p] = __float22bfloat162_rn(h);
  }
  const float mine = warp_sum(squares.x + squares.y);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = mine;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int w = 0; w < 8; ++w) total += sums[w];
  const float rstd = rsqrtf(total / (2 * pairs) + eps);
  for (int p = threadIdx.x; p < pairs; p += 256) {
    const float2 h = kept[p], w = __bfloat1622float2(weight[p]);
    x[p] = __floats2bfloat162_rn(h.x * rstd * w.x, h.y * rstd * w.y);
  }
}
