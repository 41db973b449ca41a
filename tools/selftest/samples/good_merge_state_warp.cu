/* kopt: 1
family: thread_utilization
note: "a warp a head: every lane computes the weights, four values a lane"
where: "N <= 8 and D == 128"
flags: {fast_math: false}
launch:
  - kernel: merge_state_warp
    grid: ceil_div(N * H, 4)
    block: 128
    args: [v_a, s_a, v_b, s_b, v_merged, s_merged, {int32: "N * H"}]
*/
// sample: kernel=merge_state_n8xh64xd128 status=passed level=full
// Mapping: warp w of block x owns head 4 x + w, lane l the values 4 l to 4 l + 3.

#include <cuda_bf16.h>

namespace attention {
struct alignas(8) Four {
  __nv_bfloat162 pair[2];
};

template <class Vector>
struct State {
  const Vector* v;
  const float* s;
};

// What is empty counts for nothing, whatever it holds.
__device__ __forceinline__ float weighted(float v, float weight) { return weight > 0.0f ? v * weight : 0.0f; }
}  // namespace attention

using attention::Four;

extern "C" __global__ void merge_state_warp(const Four* v_a, const float* s_a, const Four* v_b,
                                            const float* s_b, Four* v_merged, float* s_merged,
                                            int heads) {
  const int head = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (head >= heads) return;
  const attention::State<Four> a{v_a + size_t(head) * 32, s_a + head}, b{v_b + size_t(head) * 32, s_b + head};
  const float most = fmaxf(*a.s, *b.s);
  const bool is_empty = isinf(most) && most < 0.0f;
  const float weight_a = is_empty ? 0.0f : exp2f(*a.s - most), weight_b = is_empty ? 0.0f : exp2f(*b.s - most);
  const float total = weight_a + weight_b, inverse = is_empty ? 0.0f : 1.0f / total;
  const Four from_a = a.v[lane], from_b = b.v[lane];
  Four to;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float2 x = __bfloat1622float2(from_a.pair[i]), y = __bfloat1622float2(from_b.pair[i]);
    to.pair[i] = __floats2bfloat162_rn(
        (attention::weighted(x.x, weight_a) + attention::weighted(y.x, weight_b)) * inverse,
        (attention::weighted(x.y, weight_a) + attention::weighted(y.y, weight_b)) * inverse);
  }
  v_merged[size_t(head) * 32 + lane] = to;
  if (lane == 0) s_merged[head] = is_empty ? most : log2f(total) + most;
}
