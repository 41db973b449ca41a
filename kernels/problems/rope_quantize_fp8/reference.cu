/* kopt: 1
family: other
note: "starting point: one block per token and head, scalar loads, pairs loaded twice"
where: "true"
tune: {BLOCK: [128, 64, 256, 576]}
launch:
  - kernel: rope_quantize_fp8_kernel
    grid: N, H + 1
    block: BLOCK
    args: [q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids,
           q_rope_out, k_rope_out, q_nope_out, k_nope_out, H, R, C, quant_scale_q, quant_scale_kv]
*/
// Mapping: block (n, h) owns head h of token n, and the token's key where h = H; thread t owns the
// elements t, t + BLOCK, ... of the R rotated and C unrotated columns, taken as one row.
// No shared memory and no barriers: both halves of a rotated pair are loaded twice instead.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

__device__ __nv_fp8_storage_t to_e4m3(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

// Element `column` of the rotated row x: columns i and R/2 + i are a pair with one angle.
__device__ float rotated(const __nv_bfloat16* x, const float* cos_sin, int column, int R) {
  const int half = R / 2;
  const int pair = column % half;
  const float first = __bfloat162float(x[pair]);
  const float second = __bfloat162float(x[half + pair]);
  const float cosine = cos_sin[pair];
  const float sine = cos_sin[half + pair];
  return column < half ? first * cosine - second * sine : second * cosine + first * sine;
}

extern "C" __global__ void rope_quantize_fp8_kernel(
    const __nv_bfloat16* q_rope, const __nv_bfloat16* k_rope, const __nv_bfloat16* q_nope,
    const __nv_bfloat16* k_nope, const float* cos_sin_cache, const int* pos_ids,
    __nv_fp8_storage_t* q_rope_out, __nv_fp8_storage_t* k_rope_out, __nv_fp8_storage_t* q_nope_out,
    __nv_fp8_storage_t* k_nope_out, int H, int R, int C, float quant_scale_q,
    float quant_scale_kv) {
  const size_t token = blockIdx.x;
  const int head = blockIdx.y;
  const bool is_key = head == H;
  const size_t row = is_key ? token : token * H + head;
  const __nv_bfloat16* rope = (is_key ? k_rope : q_rope) + row * R;
  const __nv_bfloat16* nope = (is_key ? k_nope : q_nope) + row * C;
  __nv_fp8_storage_t* rope_out = (is_key ? k_rope_out : q_rope_out) + row * R;
  __nv_fp8_storage_t* nope_out = (is_key ? k_nope_out : q_nope_out) + row * C;
  const float scale = is_key ? quant_scale_kv : quant_scale_q;
  const float* cos_sin = cos_sin_cache + static_cast<size_t>(pos_ids[token]) * R;

  for (int element = threadIdx.x; element < R + C; element += BLOCK) {
    if (element < R) {
      rope_out[element] = to_e4m3(rotated(rope, cos_sin, element, R) * scale);
    } else {
      nope_out[element - R] = to_e4m3(__bfloat162float(nope[element - R]) * scale);
    }
  }
}
