/* kopt: 1
family: grid_shape
note: "few rows: a head per 16-lane tile in small blocks; many rows: persistent blocks"
where: "N <= 128 and D == 128"
tune: {WARPS: [2, 8]}
variants:
  - when: "N <= 16"
    launch:
      - kernel: merge_state_small
        grid: ceil_div(N * H, 2 * WARPS)
        block: 16, 2 * WARPS
        args: [v_a, s_a, v_b, s_b, v_merged, s_merged, {int32: "N * H"}]
  - when: "true"
    set: {WARPS: 8}  # few heads per block would make many waves here
    launch:
      - kernel: merge_state_persistent
        grid: min(ceil_div(N * H, 2 * WARPS), 4 * SM_COUNT)
        block: 16, 2 * WARPS
        args: [v_a, s_a, v_b, s_b, v_merged, s_merged, {int32: "N * H"}]
*/
// sample: kernel=merge_state_n8xh64xd128 status=passed level=full
// Mapping, both kernels: 16 lanes own a head, 8 consecutive values of v each (16 bytes). In the
// persistent kernel a group of lanes goes on to the head one grid further.

#include <cuda_bf16.h>

struct alignas(16) Vector {
  __nv_bfloat162 pairs[4];
};

__device__ void merge_head(const Vector* v_a, const float* s_a, const Vector* v_b, const float* s_b,
                           Vector* v_merged, float* s_merged, int head) {
  const size_t at = static_cast<size_t>(head) * 16 + threadIdx.x;
  const float score_a = s_a[head], score_b = s_b[head];
  const float larger = fmaxf(score_a, score_b);
  Vector merged = {};
  float score = larger;
  if (larger > -3.4e38f) {  // else both states are empty
    const float weight_a = exp2f(score_a - larger), weight_b = exp2f(score_b - larger);
    const float inverse = 1.0f / (weight_a + weight_b);
    // An empty state counts for nothing, whatever it holds: 0 times NaN would be NaN.
    const Vector a = weight_a > 0.0f ? v_a[at] : Vector{}, b = weight_b > 0.0f ? v_b[at] : Vector{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = __bfloat1622float2(a.pairs[i]), y = __bfloat1622float2(b.pairs[i]);
      merged.pairs[i] = __floats2bfloat162_rn((x.x * weight_a + y.x * weight_b) * inverse,
                                              (x.y * weight_a + y.y * weight_b) * inverse);
    }
    score = log2f(weight_a + weight_b) + larger;
  }
  v_merged[at] = merged;
  if (threadIdx.x == 0) s_merged[head] = score;
}

extern "C" __global__ void merge_state_small(const __nv_bfloat16* v_a, const float* s_a,
                                             const __nv_bfloat16* v_b, const float* s_b,
                                             __nv_bfloat16* v_merged, float* s_merged, int heads) {
  const int head = blockIdx.x * blockDim.y + threadIdx.y;
  if (head >= heads) return;
  merge_head(reinterpret_cast<const Vector*>(v_a), s_a, reinterpret_cast<const Vector*>(v_b), s_b,
             reinterpret_cast<Vector*>(v_merged), s_merged, head);
}

extern "C" __global__ void merge_state_persistent(const __nv_bfloat16* v_a, const float* s_a,
                                                  const __nv_bfloat16* v_b, const float* s_b,
                                                  __nv_bfloat16* v_merged, float* s_merged,
                                                  int heads) {
  for (int head = blockIdx.x * blockDim.y + threadIdx.y; head < heads;
       head += gridDim.x * blockDim.y) {
    merge_head(reinterpret_cast<const Vector*>(v_a), s_a, reinterpret_cast<const Vector*>(v_b), s_b,
               reinterpret_cast<Vector*>(v_merged), s_merged, head);
  }
}
