/* kopt: 1
family: [vectorization, algebra]
note: "weights once per head, not per element: a warp takes two heads, 16 bytes a lane"
where: "N <= 8 and D == 128"
launch:
  - kernel: merge_state_vectorized
    grid: ceil_div(N * H, 8)
    block: 128
    args: [v_a, s_a, v_b, s_b, v_merged, s_merged, N, H]
*/
// sample: kernel=merge_state_n8xh64xd128 status=passed level=full
// Mapping: 16 consecutive threads own a head, 8 values of v each. Lanes 0 and 16 of a warp compute
// the weights of their heads and hand them on by shuffles.

#include <cuda_bf16.h>

extern "C" __global__ void merge_state_vectorized(const __nv_bfloat16* v_a, const float* s_a,
                                                  const __nv_bfloat16* v_b, const float* s_b,
                                                  __nv_bfloat16* v_merged, float* s_merged, int N,
                                                  int H) {
  const int head = blockIdx.x * 8 + threadIdx.x / 16;
  const int lane = threadIdx.x % 16;
  const bool has_head = head < N * H;
  float weight_a = 0.0f, weight_b = 0.0f;
  if (has_head && lane == 0) {
    const float a = s_a[head], b = s_b[head];
    const float larger = fmaxf(a, b);
    float score = larger;
    if (larger > -3.4e38f) {  // else both states are empty: the weights stay 0
      weight_a = exp2f(a - larger);
      weight_b = exp2f(b - larger);
      const float total = weight_a + weight_b;
      score = log2f(total) + larger;
      weight_a /= total;
      weight_b /= total;
    }
    s_merged[head] = score;
  }
  weight_a = __shfl_sync(0xffffffffu, weight_a, 0, 16);
  weight_b = __shfl_sync(0xffffffffu, weight_b, 0, 16);
  if (!has_head) return;

  const size_t at = static_cast<size_t>(head) * 16 + lane;
  const uint4 a = reinterpret_cast<const uint4*>(v_a)[at];
  const uint4 b = reinterpret_cast<const uint4*>(v_b)[at];
  uint4 merged;
  const auto* from_a = reinterpret_cast<const __nv_bfloat162*>(&a);
  const auto* from_b = reinterpret_cast<const __nv_bfloat162*>(&b);
  auto* to = reinterpret_cast<__nv_bfloat162*>(&merged);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 x = __bfloat1622float2(from_a[i]), y = __bfloat1622float2(from_b[i]);
    // An empty state may hold anything, so its weight of 0 must not multiply it.
    const float first = weight_a == 0.0f ? 0.0f : x.x * weight_a;
    const float second = weight_a == 0.0f ? 0.0f : x.y * weight_a;
    to[i] = __floats2bfloat162_rn(first + (weight_b == 0.0f ? 0.0f : y.x * weight_b),
                                  second + (weight_b == 0.0f ? 0.0f : y.y * weight_b));
  }
  reinterpret_cast<uint4*>(v_merged)[at] = merged;
}
