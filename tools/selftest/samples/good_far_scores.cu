/* kopt: 1
family: other
note: "weights relative to the larger score, in plain loops"
where: "N <= 8"
launch:
  - kernel: merge_state
    grid: ceil_div(N * H * D, 256)
    block: 256
    args: [v_a, s_a, v_b, s_b, v_merged, s_merged, D]
*/
// sample: kernel=merge_state_n8xh64xd128 status=passed level=full
// The honest twin of evil_far_scores and evil_empty_state_multiplied.

#include <cuda_bf16.h>

extern "C" __global__ void merge_state(const __nv_bfloat16* v_a, const float* s_a,
                                       const __nv_bfloat16* v_b, const float* s_b,
                                       __nv_bfloat16* v_merged, float* s_merged, int D) {
  const int element = blockIdx.x * 256 + threadIdx.x;
  const int head = element / D;
  const float offset = fmaxf(s_a[head], s_b[head]);
  const float a = s_a[head] == -INFINITY ? 0.0f : exp2f(s_a[head] - offset);
  const float b = s_b[head] == -INFINITY ? 0.0f : exp2f(s_b[head] - offset);
  v_merged[element] = __float2bfloat16(
      ((a > 0.0f ? __bfloat162float(v_a[element]) * a : 0.0f) +
       (b > 0.0f ? __bfloat162float(v_b[element]) * b : 0.0f)) /
      (a + b > 0.0f ? a + b : 1.0f));
  if (element % D == 0) s_merged[head] = log2f(a + b) + offset;
}
