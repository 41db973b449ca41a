/* kopt: 1
family: [thread_utilization, vectorization, divergence]
note: >-
  A block either rotates or only converts; those that rotate come first, because their angles hang on pos_ids; ITEMS
  16 byte loads in flight a thread that converts. The next launch may start at entry up to 16 tokens, beyond once this
  one's loads are on their way.
where: "H == 128 and R == 64 and C == 512 and N < 524288"
tune: {BLOCK: [128, 256, 512], ITEMS: [4, 2], HINT: [2, 0, 1], TRIGGER: [1, 0]}
variants:
  - when: "N <= 16"
    set: {BLOCK: 128, ITEMS: 4, HINT: 2, TRIGGER: 0}
    launch:
      - kernel: rope_quantize_rows
        grid: N * 512 // BLOCK + ceil_div(N * 4, BLOCK) + N * 8192 // (BLOCK * ITEMS) + ceil_div(N * 64, BLOCK * ITEMS)
        block: BLOCK
        pdl: true
        args: [q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, q_rope_out, k_rope_out, q_nope_out, k_nope_out,
               N, quant_scale_q, quant_scale_kv]
  - when: "N <= 512"
    set: {BLOCK: 256, ITEMS: 4, HINT: 2, TRIGGER: 1}
    launch:
      - kernel: rope_quantize_rows
        grid: N * 512 // BLOCK + ceil_div(N * 4, BLOCK) + N * 8192 // (BLOCK * ITEMS) + ceil_div(N * 64, BLOCK * ITEMS)
        block: BLOCK
        pdl: true
        args: [q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, q_rope_out, k_rope_out, q_nope_out, k_nope_out,
               N, quant_scale_q, quant_scale_kv]
  - when: "true"
    set: {BLOCK: 512, ITEMS: 2, HINT: 0, TRIGGER: 1}
    launch:
      - kernel: rope_quantize_rows
        grid: N * 512 // BLOCK + ceil_div(N * 4, BLOCK) + N * 8192 // (BLOCK * ITEMS) + ceil_div(N * 64, BLOCK * ITEMS)
        block: BLOCK
        pdl: true
        args: [q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, q_rope_out, k_rope_out, q_nope_out, k_nope_out,
               N, quant_scale_q, quant_scale_kv]
*/
// Mapping: four ranges of blocks, one after another.
// 1, 2. Rotation of the queries, then of the keys: 4 threads a head, 8 pairs of columns each.
// 3, 4. Conversion of the queries, then of the keys, each a flat range: BLOCK ITEMS vectors of 8 columns a block. The
// last block of the keys may have fewer. Vectors are counted in 32 bits: 8,192 a token.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

constexpr int kHeads = 128;
constexpr int kChunk = BLOCK * ITEMS;       // vectors that a converting block owns
constexpr int kRopeVectors = 64 / 8;        // of a head
constexpr int kNopeVectors = 512 / 8;       // of a head
constexpr int kRotators = kRopeVectors / 2;  // threads of a head
static_assert(kHeads * kRotators % BLOCK == 0 && kHeads * kNopeVectors % kChunk == 0, "a token's queries fill blocks");

struct alignas(16) Vector {
  unsigned pairs[4];
};
// A bf16 is the upper half of an fp32: the low one of a pair is shifted there, the high one masked.
__device__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
struct alignas(8) Codes {
  unsigned short pairs[4];
};
__device__ unsigned short code(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}
__device__ Vector get(const Vector* at) {
  if (HINT < 1) return *at;
  const uint4 v = kopt::load_streaming_16(at);
  return *reinterpret_cast<const Vector*>(&v);
}

__device__ void put(Codes* at, const Codes& codes) {
  if (HINT >= 2) {
    __stcs(reinterpret_cast<uint2*>(at), *reinterpret_cast<const uint2*>(&codes));
  } else {
    *at = codes;
  }
}

// Rows of 64 columns, `heads` to a token: rotates 8 columns of the first half with those 32 further.
__device__ void rotate(const __nv_bfloat16* rows, __nv_fp8_storage_t* out, const float* cos_sin_cache,
                       const int* pos_ids, unsigned item, int heads, float scale) {
  const unsigned row = item / kRotators, part = item % kRotators;
  const int position = pos_ids[row / heads];
  const Vector* x = reinterpret_cast<const Vector*>(rows) + row * kRopeVectors + part;
  const Vector one = get(x), two = get(x + kRotators);
  const float4* angles = reinterpret_cast<const float4*>(cos_sin_cache + static_cast<size_t>(position) * 64) + 2 * part;
  const float4 cosines[2] = {angles[0], angles[1]}, sines[2] = {angles[8], angles[9]};
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
  Codes low, high;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 cosine = cosines[i / 2], sine = sines[i / 2];
    const float2 c = i % 2 ? make_float2(cosine.z, cosine.w) : make_float2(cosine.x, cosine.y);
    const float2 s = i % 2 ? make_float2(sine.z, sine.w) : make_float2(sine.x, sine.y);
    const float p = low_of(one.pairs[i]), q = high_of(one.pairs[i]);
    const float u = low_of(two.pairs[i]), v = high_of(two.pairs[i]);
    low.pairs[i] = code((p * c.x - u * s.x) * scale, (q * c.y - v * s.y) * scale);
    high.pairs[i] = code((u * c.x + p * s.x) * scale, (v * c.y + q * s.y) * scale);
  }
  Codes* to = reinterpret_cast<Codes*>(out) + row * kRopeVectors + part;
  to[0] = low;
  to[kRotators] = high;
}

// Whole: all vectors of the chunk are there, and `count` is not read.
template <bool kWhole>
__device__ void convert(const __nv_bfloat16* values, __nv_fp8_storage_t* out, unsigned chunk, unsigned count,
                        float scale) {
  const unsigned at = chunk * kChunk + threadIdx.x;
  const Vector* x = reinterpret_cast<const Vector*>(values) + at;
  Codes* to = reinterpret_cast<Codes*>(out) + at;
  Vector v[ITEMS] = {};
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    if (kWhole || at + k * BLOCK < count) v[k] = get(x + k * BLOCK);
  }
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    Codes codes;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      codes.pairs[i] = code(low_of(v[k].pairs[i]) * scale, high_of(v[k].pairs[i]) * scale);
    }
    if (kWhole || at + k * BLOCK < count) put(to + k * BLOCK, codes);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    rope_quantize_rows(const __nv_bfloat16* q_rope, const __nv_bfloat16* k_rope, const __nv_bfloat16* q_nope,
                       const __nv_bfloat16* k_nope, const float* cos_sin_cache, const int* pos_ids,
                       __nv_fp8_storage_t* q_rope_out, __nv_fp8_storage_t* k_rope_out,
                       __nv_fp8_storage_t* q_nope_out, __nv_fp8_storage_t* k_nope_out, int N,
                       float quant_scale_q, float quant_scale_kv) {
  if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
  const unsigned tokens = N;
  const unsigned q_rotating = tokens * kHeads * kRotators / BLOCK;
  const unsigned k_rotating = (tokens * kRotators + BLOCK - 1) / BLOCK;
  const unsigned q_converting = tokens * kHeads * kNopeVectors / kChunk;
  unsigned block = blockIdx.x;
  kopt::griddepcontrol_wait();
  if (block < q_rotating) {
    const unsigned item = block * BLOCK + threadIdx.x;
    rotate(q_rope, q_rope_out, cos_sin_cache, pos_ids, item, kHeads, quant_scale_q);
    return;
  }
  block -= q_rotating;
  if (block < k_rotating) {
    const unsigned item = block * BLOCK + threadIdx.x;
    if (item < tokens * kRotators) rotate(k_rope, k_rope_out, cos_sin_cache, pos_ids, item, 1, quant_scale_kv);
    return;
  }
  block -= k_rotating;
  if (block < q_converting) {
    convert<true>(q_nope, q_nope_out, block, 0, quant_scale_q);
  } else {
    convert<false>(k_nope, k_nope_out, block - q_converting, tokens * kNopeVectors, quant_scale_kv);
  }
}
