/* kopt: 1
family: [reduction, register_caching]
note: "cooperative groups: a tile of 16 lanes owns a scale block of 128 columns, no shared max"
where: "B <= 8"
launch:
  - kernel: fused_add_rmsnorm_fp8_tiles
    grid: B
    block: H // 8
    args: [out, block_scale, normed_out, input, residual, weight, H, BP, eps]
*/
// sample: kernel=fused_add_rmsnorm_fp8_block_quant_b8xh7168 status=passed level=full
// Mapping: block b owns row b, thread t the 8 columns from 8 t on; 16 consecutive threads are a
// tile and own scale block t / 16. Shared memory: a partial sum per warp, at most 32 floats.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace cg = cooperative_groups;

struct alignas(16) Vector {
  __nv_bfloat162 pairs[4];
};

extern "C" __global__ void fused_add_rmsnorm_fp8_tiles(__nv_fp8_storage_t* out, float* block_scale,
                                                       __nv_bfloat16* normed_out,
                                                       const __nv_bfloat16* input,
                                                       __nv_bfloat16* residual,
                                                       const __nv_bfloat16* weight, int H, int BP,
                                                       float eps) {
  __shared__ float warp_sums[32];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto tile = cg::tiled_partition<16>(block);
  const size_t at = static_cast<size_t>(blockIdx.x) * (H / 8) + threadIdx.x;

  const Vector x = reinterpret_cast<const Vector*>(input)[at];
  Vector r = reinterpret_cast<Vector*>(residual)[at];
  const Vector w = reinterpret_cast<const Vector*>(weight)[threadIdx.x];
  float2 h[4];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = __bfloat1622float2(x.pairs[i]), b = __bfloat1622float2(r.pairs[i]);
    h[i] = make_float2(a.x + b.x, a.y + b.y);
    sum += h[i].x * h[i].x + h[i].y * h[i].y;
    r.pairs[i] = __floats2bfloat162_rn(h[i].x, h[i].y);
  }
  reinterpret_cast<Vector*>(residual)[at] = r;
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) warp_sums[warp.meta_group_rank()] = sum;
  block.sync();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
  for (unsigned i = 0; i < warp.meta_group_size(); ++i) total += warp_sums[i];
  const float rstd = rsqrtf(total / H + eps);

  Vector normed;
  float amax = 1e-4f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 scale = __bfloat1622float2(w.pairs[i]);
    normed.pairs[i] = __floats2bfloat162_rn(h[i].x * rstd * scale.x, h[i].y * rstd * scale.y);
    h[i] = __bfloat1622float2(normed.pairs[i]);  // codes come from the rounded values
    amax = fmaxf(amax, fmaxf(fabsf(h[i].x), fabsf(h[i].y)));
  }
  reinterpret_cast<Vector*>(normed_out)[at] = normed;
  amax = cg::reduce(tile, amax, cg::greater<float>());
  if (tile.thread_rank() == 0) {
    block_scale[static_cast<size_t>(threadIdx.x / 16) * BP + blockIdx.x] = amax / 448.0f;
  }
  const float multiplier = 448.0f / amax;
  __nv_fp8x2_storage_t* codes = reinterpret_cast<__nv_fp8x2_storage_t*>(out) + 4 * at;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    codes[i] = __nv_cvt_float2_to_fp8x2(make_float2(h[i].x * multiplier, h[i].y * multiplier),
                                        __NV_SATFINITE, __NV_E4M3);
  }
}
