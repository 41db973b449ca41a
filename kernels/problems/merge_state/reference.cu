/* kopt: 1
family: other
note: "starting point: one thread per output element, scalar loads, weights for each anew"
where: "true"
tune: {BLOCK: [256, 128, 512, 1024]}
launch:
  - kernel: merge_state_kernel
    grid: ceil_div(N * H * D, BLOCK)
    block: BLOCK
    args: [v_a, s_a, v_b, s_b, v_merged, s_merged, N, H, D]
*/
// Mapping: thread i of the grid owns element i of v_merged, row-major over (N, H, D), and the
// thread of a head's first element also stores its score.
// No shared memory and no barriers: every thread computes the weights of its head itself.

#include <cuda_bf16.h>

constexpr float LOWEST_FINITE = -3.402823466e+38f;

extern "C" __global__ void merge_state_kernel(const __nv_bfloat16* v_a, const float* s_a,
                                              const __nv_bfloat16* v_b, const float* s_b,
                                              __nv_bfloat16* v_merged, float* s_merged, int N,
                                              int H, int D) {
  const long long element = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  if (element >= static_cast<long long>(N) * H * D) {
    return;
  }
  const long long head = element / D;
  const float larger = fmaxf(s_a[head], s_b[head]);
  float merged = 0.0f;
  float score = larger;
  if (larger >= LOWEST_FINITE) {  // else both are -inf, and their difference is NaN
    const float weight_a = exp2f(s_a[head] - larger);
    const float weight_b = exp2f(s_b[head] - larger);
    const float total = weight_a + weight_b;
    // An empty state counts for nothing, whatever it holds: 0 times NaN would be NaN.
    const float weighted_a = weight_a > 0.0f ? __bfloat162float(v_a[element]) * weight_a : 0.0f;
    const float weighted_b = weight_b > 0.0f ? __bfloat162float(v_b[element]) * weight_b : 0.0f;
    merged = (weighted_a + weighted_b) / total;
    score = log2f(total) + larger;
  }
  v_merged[element] = __float2bfloat16(merged);
  if (element % D == 0) {
    s_merged[head] = score;
  }
}
