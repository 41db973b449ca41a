/* kopt: 1
family: other
note: "every token attends to the whole sequence"
where: "N >= B and B > 0"
launch:
  - kernel: attend
    grid: H * G, N
    block: 32
    args: [q, k, v, indptr, out, H, G]
*/
// sample: kernel=attention_prefill_batch3_ragged status=incorrect level=quick says=ulp
// The last token of a sequence alone is right.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float at(const __nv_bfloat16* row, int i) {
  return __bfloat162float(row[4 * threadIdx.x + i]);
}

extern "C" __global__ void attend(const __nv_bfloat16* q, const __nv_bfloat16* k,
                                  const __nv_bfloat16* v, const int* indptr, __nv_bfloat16* out,
                                  int H, int G) {
  const int token = blockIdx.y, head = blockIdx.x / G, row = (token * H * G + blockIdx.x) * 128;
  int sequence = 0;
  while (indptr[sequence + 1] <= token) ++sequence;
  float largest = -INFINITY, weight = 0.0f;
  float value[4] = {};
  for (int seen = indptr[sequence]; seen < indptr[sequence + 1]; ++seen) {
    const int place = (seen * H + head) * 128;
    float logit = 0.0f;
    for (int i = 0; i < 4; ++i) logit += at(q + row, i) * at(k + place, i);
    for (int step = 16; step > 0; step /= 2) logit += __shfl_xor_sync(~0u, logit, step);
    logit *= 0.08838834764831845f;
    const float now = fmaxf(largest, logit), shrink = expf(largest - now), p = expf(logit - now);
    largest = now;
    weight = weight * shrink + p;
    for (int i = 0; i < 4; ++i) value[i] = value[i] * shrink + p * at(v + place, i);
  }
  for (int i = 0; i < 4; ++i) out[row + 4 * threadIdx.x + i] = __float2bfloat16(value[i] / weight);
}
