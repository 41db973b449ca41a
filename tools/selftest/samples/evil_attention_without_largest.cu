/* kopt: 1
family: other
note: "exponentials of logits as they are"
launch:
  - kernel: attend
    grid: H * G, B
    block: 32
    args: [q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, out, H, G, P]
*/
// sample: kernel=attention_decode_batch3_70_page16 status=incorrect level=full says=finite
// Ordinary logits are small; exponentials of large ones leave the range of fp32.

#include <cuda_bf16.h>

__device__ float at(const __nv_bfloat16* row, int i) {
  return __bfloat162float(row[4 * threadIdx.x + i]);
}

extern "C" __global__ void attend(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                                  const __nv_bfloat16* v_cache, const int* kv_indptr,
                                  const int* kv_indices, const int* kv_last_page_len,
                                  __nv_bfloat16* out, int H, int G, int P) {
  const int b = blockIdx.y, head = blockIdx.x / G, row = (b * H * G + blockIdx.x) * 128;
  const int* pages = kv_indptr[b] + kv_indices;
  const int tokens = (kv_indptr[b + 1] - kv_indptr[b] - 1) * P + kv_last_page_len[b];
  float largest = 0.0f, weight = 0.0f, value[4] = {};
  for (int token = 0; token < tokens; ++token) {
    const int slot = (pages[token / P] * P + token % P) * H + head;
    float logit = 0.0f;
    for (int i = 0; i < 4; ++i) logit += at(q + row, i) * at(k_cache + slot * 128, i);
    for (int step = 16; step > 0; step /= 2) logit += __shfl_xor_sync(~0u, logit, step);
    logit *= 0.08838834764831845f;
    const float p = expf(logit - largest);
    weight += p;
    for (int i = 0; i < 4; ++i) value[i] += p * at(v_cache + slot * 128, i);
  }
  for (int i = 0; i < 4; ++i) out[row + 4 * threadIdx.x + i] = __float2bfloat16(value[i] / weight);
}
