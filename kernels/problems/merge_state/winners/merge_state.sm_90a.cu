/* kopt: 1
family: [thread_utilization, vectorization, cache_policy]
note: >-
  16 lanes a head and 8 columns a lane over all heads. Up to 512 positions small blocks, so that 8 fill the machine,
  too, and loads and stores that leave L1 and L2 early. An empty state is masked out of the packed pairs; the next
  launch may start at entry.
where: "D == 128 and N * H < 134217728"
tune: {BLOCK: [128, 64, 256, 512], HINT: [2, 0, 1], TRIGGER: [1, 0]}
variants:
  - when: "N <= 512"
    set: {BLOCK: 128, HINT: 2, TRIGGER: 0}
    launch:
      - kernel: merge_heads
        grid: ceil_div(N * H * 16, BLOCK)
        block: BLOCK
        pdl: true
        args: [v_a, s_a, v_b, s_b, v_merged, s_merged, N, H]
  - when: "true"
    set: {BLOCK: 512, HINT: 0, TRIGGER: 0}
    launch:
      - kernel: merge_heads
        grid: ceil_div(N * H * 16, BLOCK)
        block: BLOCK
        pdl: true
        args: [v_a, s_a, v_b, s_b, v_merged, s_merged, N, H]
*/
// Mapping: 16 consecutive threads own a head, 8 columns each.
#include <cuda_bf16.h>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

struct alignas(16) Vector {
  unsigned pairs[4];
};
// A bf16 is the upper half of an fp32: the low one of a pair is shifted there, the high one masked.
__device__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ Vector get(const Vector* at) {
  if (HINT < 1) return *at;
  const uint4 v = kopt::load_streaming_16(at);
  return *reinterpret_cast<const Vector*>(&v);
}
__device__ void put(Vector* at, const Vector& v) {
  if (HINT >= 2) {
    kopt::store_streaming_16(at, *reinterpret_cast<const uint4*>(&v));
  } else {
    *at = v;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    merge_heads(const __nv_bfloat16* v_a, const float* s_a, const __nv_bfloat16* v_b, const float* s_b,
                __nv_bfloat16* v_merged, float* s_merged, int N, int H) {
  if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
  const int at = blockIdx.x * BLOCK + threadIdx.x;
  if (at >= N * H * 16) return;
  kopt::griddepcontrol_wait();
  const float a_score = s_a[at / 16], b_score = s_b[at / 16];
  const Vector a = get(reinterpret_cast<const Vector*>(v_a) + at);
  const Vector b = get(reinterpret_cast<const Vector*>(v_b) + at);
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
  const float larger = fmaxf(a_score, b_score);
  float a_weight = 0.0f, b_weight = 0.0f, score = larger;
  if (larger >= -3.402823466e+38f) {  // else both states are empty
    a_weight = exp2f(a_score - larger);
    b_weight = exp2f(b_score - larger);
    const float total = a_weight + b_weight;
    score = log2f(total) + larger;
    const float inverse = __fdividef(1.0f, total);
    a_weight *= inverse;
    b_weight *= inverse;
  }
  // An empty state counts for nothing, whatever it holds: 0 times NaN would be NaN.
  const unsigned a_mask = a_weight > 0.0f ? 0xffffffffu : 0u;
  const unsigned b_mask = b_weight > 0.0f ? 0xffffffffu : 0u;
  Vector merged;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned p = a.pairs[i] & a_mask, q = b.pairs[i] & b_mask;
    merged.pairs[i] = pack(low_of(p) * a_weight + low_of(q) * b_weight,
                           high_of(p) * a_weight + high_of(q) * b_weight);
  }
  put(reinterpret_cast<Vector*>(v_merged) + at, merged);
  if (at % 16 == 0) s_merged[at / 16] = score;
}
