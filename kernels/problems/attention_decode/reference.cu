/* kopt: 1
family: other
note: "starting point: a block for each query head of each sequence, a warp for a token, no head shares a load"
where: "true"
tune: {WARPS: [4, 8, 16]}
launch:
  - kernel: attention_decode_kernel
    grid: H * G, B
    block: 32 * WARPS
    args: [q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, out, H, G, P]
*/
// Mapping: block (head, b) owns one query head of one sequence; its warps take turns at the tokens,
// lane l of a warp owns the columns 4 l to 4 l + 3 of keys, values and the result.
// Each warp has a softmax of its own: its largest logit, and sums relative to that. They meet in
// shared memory, where the barrier stands before warp 0 reads what the others have left.
// Logits are to the base 2.

#include <cuda_bf16.h>

#include <cmath>

constexpr int D = 128, EACH = D / 32;

struct State {
  float largest, sum, value[EACH];

  __device__ void add(float logit, float weight, const float* other) {
    const float now = fmaxf(largest, logit);
    const float mine = exp2f(largest - now), others = exp2f(logit - now);
    sum = sum * mine + weight * others;
    for (int i = 0; i < EACH; ++i) value[i] = value[i] * mine + other[i] * others;
    largest = now;
  }
};

__device__ void load(float (&to)[EACH], const __nv_bfloat16* row) {
  for (int i = 0; i < EACH; ++i) to[i] = __bfloat162float(row[EACH * (threadIdx.x % 32) + i]);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention_decode_kernel(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                            const __nv_bfloat16* v_cache, const int* kv_indptr,
                            const int* kv_indices, const int* kv_last_page_len, __nv_bfloat16* out,
                            int H, int G, int P) {
  __shared__ State states[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int head = blockIdx.x / G, b = blockIdx.y;
  const size_t row = (static_cast<size_t>(b) * H * G + blockIdx.x) * D;
  const int* pages = kv_indices + kv_indptr[b];
  const int tokens = (kv_indptr[b + 1] - kv_indptr[b] - 1) * P + kv_last_page_len[b];

  float query[EACH], other[EACH];
  load(query, q + row);
  for (int i = 0; i < EACH; ++i) query[i] *= 1.4426950408889634f / sqrtf(D);
  State state = {-INFINITY, 0.0f, {}};
  for (int token = warp; token < tokens; token += WARPS) {
    const size_t slot = static_cast<size_t>(pages[token / P]) * P + token % P;
    load(other, k_cache + (slot * H + head) * D);
    float logit = 0.0f;
    for (int i = 0; i < EACH; ++i) logit += query[i] * other[i];
    for (int step = 16; step > 0; step /= 2) logit += __shfl_xor_sync(~0u, logit, step);
    load(other, v_cache + (slot * H + head) * D);
    state.add(logit, 1.0f, other);
  }
  states[warp][lane] = state;
  __syncthreads();
  if (warp > 0) return;
  for (int i = 1; i < WARPS; ++i) {
    const State& more = states[i][lane];
    if (more.sum > 0.0f) state.add(more.largest, more.sum, more.value);
  }
  for (int i = 0; i < EACH; ++i) {
    out[row + EACH * lane + i] = __float2bfloat16(state.value[i] / state.sum);
  }
}
