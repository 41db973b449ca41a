/* kopt: 1
family: divergence
note: "the larger score has weight 1; equal ones share it"
where: "N <= 8"
launch:
  - kernel: merge_state
    grid: N * H
    block: D
    args: [v_a, s_a, v_b, s_b, v_merged, s_merged, D]
*/
// sample: kernel=merge_state_n8xh64xd128 status=incorrect level=full
// Equal scores have weight 1 each, not a half: the vector is right and the score one too low. Two
// scores that are drawn are never equal by chance.

#include <cuda_bf16.h>

extern "C" __global__ void merge_state(const __nv_bfloat16* v_a, const float* s_a,
                                       const __nv_bfloat16* v_b, const float* s_b,
                                       __nv_bfloat16* v_merged, float* s_merged, int D) {
  const int head = blockIdx.x;
  const size_t element = static_cast<size_t>(head) * D + threadIdx.x;
  const float a = s_a[head], b = s_b[head];
  const float larger = fmaxf(a, b);
  float merged = 0.0f, score = larger;
  if (larger > -INFINITY) {
    const float weight_a = a == b ? 0.5f : a > b ? 1.0f : exp2f(a - b);
    const float weight_b = a == b ? 0.5f : b > a ? 1.0f : exp2f(b - a);
    const float part_a = weight_a > 0.0f ? __bfloat162float(v_a[element]) * weight_a : 0.0f;
    const float part_b = weight_b > 0.0f ? __bfloat162float(v_b[element]) * weight_b : 0.0f;
    merged = (part_a + part_b) / (weight_a + weight_b);
    score = log2f(weight_a + weight_b) + larger;
  }
  v_merged[element] = __float2bfloat16(merged);
  if (threadIdx.x == 0) s_merged[head] = score;
}
