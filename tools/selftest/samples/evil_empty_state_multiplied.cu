/* kopt: 1
family: other
note: "0 times what an empty state holds, which may be NaN"
where: "N <= 8"
launch:
  - kernel: merge_state
    grid: ceil_div(N * H * D, 256)
    block: 256
    args: [v_a, s_a, v_b, s_b, v_merged, s_merged, D]
*/
// sample: kernel=merge_state_n8xh64xd128 status=incorrect level=full says=NaN
// An empty state counts for nothing, whatever its vector holds: nobody may have written it.

#include <cuda_bf16.h>

extern "C" __global__ void merge_state(const __nv_bfloat16* v_a, const float* s_a,
                                       const __nv_bfloat16* v_b, const float* s_b,
                                       __nv_bfloat16* v_merged, float* s_merged, int D) {
  const int element = blockIdx.x * 256 + threadIdx.x;
  const int head = element / D;
  const float larger = fmaxf(s_a[head], s_b[head]);
  const float offset = larger == -INFINITY ? 0.0f : larger;
  const float a = exp2f(s_a[head] - offset), b = exp2f(s_b[head] - offset);
  const float total = a + b > 0.0f ? a + b : 1.0f;
  v_merged[element] = __float2bfloat16(
      (__bfloat162float(v_a[element]) * a + __bfloat162float(v_b[element]) * b) / total);
  if (element % D == 0) s_merged[head] = log2f(a + b) + larger;
}
