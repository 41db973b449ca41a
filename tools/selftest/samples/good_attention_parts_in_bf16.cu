/* kopt: 1
family: other
note: "two parts of each sequence: weights in bfloat16, divided results in bfloat16, merged in fp32"
scratch:
  parts: {dtype: bfloat16, shape: "B * H * G, 2, 128"}
  scales: {dtype: float32, shape: "B * H * G, 2"}
launch:
  - kernel: attend
    grid: H * G, B, 2
    block: 32
    args: [q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, parts, scales, H, G, P]
  - kernel: merge
    grid: B * H * G
    block: 128
    args: [parts, scales, out]
*/
// sample: kernel=attention_decode_batch3_70_page16 status=passed level=full
// What libraries do: tensor cores want weights in bfloat16, and a second launch reads the parts so.

#include <cuda_bf16.h>

__device__ float at(const __nv_bfloat16* row, int i) {
  return __bfloat162float(row[4 * threadIdx.x + i]);
}

extern "C" __global__ void attend(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                                  const __nv_bfloat16* v_cache, const int* kv_indptr,
                                  const int* kv_indices, const int* kv_last_page_len,
                                  __nv_bfloat16* parts, float* scales, int H, int G, int P) {
  const int b = blockIdx.y, head = blockIdx.x / G, row = b * H * G + blockIdx.x;
  const int* pages = kv_indptr[b] + kv_indices;
  const int tokens = (kv_indptr[b + 1] - kv_indptr[b] - 1) * P + kv_last_page_len[b];
  const int half = (tokens + 1) / 2, first = blockIdx.z * half, end = min(first + half, tokens);
  float largest = -INFINITY, weight = 0.0f, value[4] = {};
  for (int token = first; token < end; ++token) {
    const int slot = (pages[token / P] * P + token % P) * H + head;
    float logit = 0.0f;
    for (int i = 0; i < 4; ++i) logit += at(q + row * 128, i) * at(k_cache + slot * 128, i);
    for (int step = 16; step > 0; step /= 2) logit += __shfl_xor_sync(~0u, logit, step);
    logit *= 0.08838834764831845f;
    const float now = fmaxf(largest, logit), shrink = expf(largest - now), p = expf(logit - now);
    const float rounded = __bfloat162float(__float2bfloat16(p));
    largest = now;
    weight = weight * shrink + p;
    for (int i = 0; i < 4; ++i) value[i] = value[i] * shrink + rounded * at(v_cache + slot * 128, i);
  }
  const int part = row * 2 + blockIdx.z;
  const bool is_empty = first >= end;
  for (int i = 0; i < 4; ++i) {
    parts[part * 128 + 4 * threadIdx.x + i] = __float2bfloat16(is_empty ? 0.0f : value[i] / weight);
  }
  if (threadIdx.x == 0) scales[part] = is_empty ? -INFINITY : logf(weight) + largest;
}

extern "C" __global__ void merge(const __nv_bfloat16* parts, const float* scales,
                                 __nv_bfloat16* out) {
  const int row = blockIdx.x, column = threadIdx.x;
  const float a = scales[row * 2], b = scales[row * 2 + 1], larger = fmaxf(a, b);
  const float of_a = expf(a - larger), of_b = expf(b - larger);
  const float sum = __bfloat162float(parts[row * 256 + column]) * of_a +
                    __bfloat162float(parts[row * 256 + 128 + column]) * of_b;
  out[row * 128 + column] = __float2bfloat16(sum / (of_a + of_b));
}
