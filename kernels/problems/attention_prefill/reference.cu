/* kopt: 1
family: other
note: "starting point: a warp for each query head of each token, which reads its keys and values alone"
where: "N >= B and B > 0"
tune: {WARPS: [4, 8, 16]}
launch:
  - kernel: attention_prefill_kernel
    grid: H * G, ceil_div(N, WARPS)
    block: 32 * WARPS
    args: [q, k, v, indptr, out, H, G, N, B]
*/
// Mapping: block (head, y) owns WARPS tokens of one query head, a warp each. A warp takes 32 tokens
// of the sequence at a time, up to its own: lane l has the logit of token l, to the base 2, and the
// columns 4 l to 4 l + 3 of the result. A query and 32 weights of each warp lie in shared memory,
// where a barrier of the warp stands between stores and loads of its lanes.

#include <cuda_bf16.h>

#include <cmath>

constexpr int D = 128, LANES = 32, EACH = D / LANES;

// The first token of the sequence that `token` belongs to.
__device__ int start_of(const int* indptr, int B, int token) {
  int low = 0, high = B - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (indptr[middle] <= token) low = middle;
    else high = middle - 1;
  }
  return indptr[low];
}

// Where a row of keys or values begins.
__device__ size_t place_of(int token, int H, int head) {
  return (static_cast<size_t>(token) * H + head) * D;
}

__device__ float dot(const float* query, unsigned two) {
  const float2 key = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&two));
  return query[0] * key.x + query[1] * key.y;
}

extern "C" __global__ void __launch_bounds__(LANES * WARPS)
    attention_prefill_kernel(const __nv_bfloat16* q, const __nv_bfloat16* k,
                             const __nv_bfloat16* v, const int* indptr, __nv_bfloat16* out, int H,
                             int G, int N, int B) {
  __shared__ float queries[WARPS][D], weights[WARPS][LANES];
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const int token = blockIdx.y * WARPS + warp;
  if (token >= N) return;
  const int head = blockIdx.x / G;
  const size_t row = (static_cast<size_t>(token) * H * G + blockIdx.x) * D;
  for (int i = lane; i < D; i += LANES) queries[warp][i] = __bfloat162float(q[row + i]);
  __syncwarp();

  float value[EACH] = {}, largest = -INFINITY, sum = 0.0f;
  for (int start = start_of(indptr, B, token); start <= token; start += LANES) {
    const int seen = start + lane, count = min(LANES, token + 1 - start);
    float logit = -INFINITY;
    if (seen <= token) {
      const uint4* key = reinterpret_cast<const uint4*>(k) + place_of(seen, H, head) / 8;
      logit = 0.0f;
      for (int i = 0; i < D; i += 8) {
        const uint4 eight = key[i / 8];
        logit += dot(queries[warp] + i, eight.x) + dot(queries[warp] + i + 2, eight.y);
        logit += dot(queries[warp] + i + 4, eight.z) + dot(queries[warp] + i + 6, eight.w);
      }
      logit *= 1.4426950408889634f / sqrtf(D);
    }
    float now = fmaxf(largest, logit);
    for (int step = 16; step > 0; step /= 2) now = fmaxf(now, __shfl_xor_sync(~0u, now, step));
    const float shrink = exp2f(largest - now), weight = exp2f(logit - now);
    weights[warp][lane] = weight;
    __syncwarp();
    sum = sum * shrink + weight;
    for (int i = 0; i < EACH; ++i) value[i] *= shrink;
    for (int j = 0; j < count; ++j) {
      const __nv_bfloat16* other = v + place_of(start + j, H, head) + EACH * lane;
      for (int i = 0; i < EACH; ++i) value[i] += weights[warp][j] * __bfloat162float(other[i]);
    }
    largest = now;
    __syncwarp();
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  for (int i = 0; i < EACH; ++i) out[row + EACH * lane + i] = __float2bfloat16(value[i] / sum);
}
