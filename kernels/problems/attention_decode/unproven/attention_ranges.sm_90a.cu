/* kopt: 1
family: [tensor_cores, grid_shape, ilp_unroll]
note: "equal ranges of the page list for all blocks, mma.sync with K and V straight from memory"
where: "D == 128 and G <= 8 and P % 16 == 0"
tune: {WARPS: [4, 8, 2], BLOCKS: [2, 1, 4]}
scratch:
  partial: {dtype: float32, shape: "min(N * (P // 16), ceil_div(SM_COUNT * BLOCKS, H)), H, 2 * 8 * 128"}
  scales: {dtype: float32, shape: "min(N * (P // 16), ceil_div(SM_COUNT * BLOCKS, H)), H, 2 * 8 * 2"}
launch:
  - kernel: attend
    grid: "min(N * (P // 16), ceil_div(SM_COUNT * BLOCKS, H)), H"
    block: 32 * WARPS
    pdl: true
    args: [q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, out, partial, scales, B, G, P]
  - kernel: merge
    grid: G, H, B
    block: 128
    pdl: true
    args: [kv_indptr, kv_last_page_len, partial, scales, out,
           {int32: "min(N * (P // 16), ceil_div(SM_COUNT * BLOCKS, H))"}, B, P]
*/
// Mapping: the list of pages, cut into tiles of 16 tokens, is shared out evenly among gridDim.x
// blocks for each head of keys and values. A sequence that lies whole in a block's range is finished
// there; of one that began before it, or goes on behind it, the block leaves a part: sums that are
// not divided yet, and for each query head its largest logit and the sum of its weights. `merge`
// adds the parts. A block has at most one of either kind: places 0 and 1.
//
// The G query heads share every load. A warp takes a tile at a time, in registers alone:
//   logits   = q (16 x 128, rows G to 15 are zeros) . K^T, two halves of 8 tokens
//   result^T = V^T (128 x 16) . p^T (16 x 8), p rounded to bfloat16
// Products take elements of k in any order that both operands share, so that each lane loads whole
// pieces of 16 bytes. Lane 4 g + t has
//   of K, columns 32 c + 8 t to 32 c + 8 t + 7 of tokens g and 8 + g;
//   of V, columns 8 g to 8 g + 7 and 64 + 8 g to 64 + 8 g + 7 of tokens 2 t, 2 t + 1, 2 t + 8 and
//   2 t + 9;
//   logits of query head g, of the same tokens as of V; of the result, the columns of its V and
//   query heads 2 t and 2 t + 1.
// The next tile is on its way while one is computed, and the number of the page behind it. Slots
// behind the last token may hold NaN: their logits, to the base 2, are replaced, and their values
// are not loaded.

#include <cuda_bf16.h>
#include <kopt/griddepcontrol.cuh>

#include <cmath>
#include <cstdint>

#define INLINE __device__ __forceinline__
constexpr int D = 128, HEADS = 8, TILE = 16, PLACES = 2, WHOLE = -1;

struct Tile { uint4 keys[2][4], values[4][2]; };
struct Sums {
  float largest, weight;  // of query head g; `weight` counts the tokens of this lane alone
  float value[8][4];      // columns 8 g + j and 64 + 8 g + j of query heads 2 t, 2 t + 1
};
// Of each warp: sums of values, and largest logit with the sum of weights.
struct Shared { float value[WARPS][HEADS][D]; float2 scales[WARPS][HEADS]; };

// Tokens of one sequence that a block attends to.
struct Segment {
  const int* pages;
  int first, end, tokens, each;  // tiles, all tokens of the sequence, tiles of a page

  INLINE int page_of(int place) const { return place < end ? pages[place / each] : 0; }
};

// One head of keys and values; `row` is the distance of two slots, in elements.
struct Cache { const __nv_bfloat16 *keys, *values; size_t row; int page_size; };

INLINE void multiply(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                     uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

INLINE uint32_t word(const uint4& from, int i) {
  return i == 0 ? from.x : i == 1 ? from.y : i == 2 ? from.z : from.w;
}

INLINE uint32_t packed(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

INLINE uint4 piece(const __nv_bfloat16* p) { return __ldg(reinterpret_cast<const uint4*>(p)); }

// Loads tile `place` of the sequence, which lies in `page`.
INLINE void load(Tile& tile, const Segment& segment, int place, int page, const Cache& cache) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t slot = static_cast<size_t>(page) * cache.page_size + place % segment.each * TILE;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const __nv_bfloat16* key = cache.keys + (slot + 8 * half + g) * cache.row + 8 * t;
#pragma unroll
    for (int c = 0; c < 4; ++c) tile.keys[half][c] = piece(key + 32 * c);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int token = 2 * t + i % 2 + i / 2 * 8;
    const __nv_bfloat16* value = cache.values + (slot + token) * cache.row + 8 * g;
    const bool is_there = place * TILE + token < segment.tokens;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      tile.values[i][half] = is_there ? piece(value + 64 * half) : make_uint4(0, 0, 0, 0);
  }
}

INLINE void attend_to(const Tile& tile, const uint4 (&query)[4], int left, float scale,
                      Sums& sums) {
  const int lane = threadIdx.x % 32, t = lane % 4;
  float logits[2][4] = {};
#pragma unroll
  for (int c = 0; c < 4; ++c)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4& key = tile.keys[half][c];
      multiply(logits[half], query[c].x, 0, query[c].y, 0, key.x, key.y);
      multiply(logits[half], query[c].z, 0, query[c].w, 0, key.z, key.w);
    }
  float now = sums.largest;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float& logit = logits[i / 2][i % 2];
    logit = 2 * t + i % 2 + i / 2 * 8 < left ? logit * scale : -INFINITY;
    now = fmaxf(now, logit);
  }
  now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
  now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
  const float shrink = exp2f(sums.largest - now);
  sums.largest = now;
  sums.weight *= shrink;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    sums.weight += logits[i / 2][i % 2] = exp2f(logits[i / 2][i % 2] - now);
  const float even = __shfl_sync(~0u, shrink, 8 * t), odd = __shfl_sync(~0u, shrink, 8 * t + 4);
  const uint32_t p0 = packed(logits[0][0], logits[0][1]), p1 = packed(logits[1][0], logits[1][1]);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const uint32_t select = j % 2 ? 0x7632 : 0x5410;
    uint32_t a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint4 &low = tile.values[i / 2 * 2][i % 2], &high = tile.values[i / 2 * 2 + 1][i % 2];
      a[i] = __byte_perm(word(low, j / 2), word(high, j / 2), select);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.value[j][i] *= i % 2 ? odd : even;
    multiply(sums.value[j], a[0], a[1], a[2], a[3], p0, p1);
  }
}

// Joins `count` parts of one column: largest logit, weight, value. Scales of two lie `row` apart.
INLINE float3 join(const float2* scales, const float* values, int row, int count) {
  float3 all = {-INFINITY, 0.0f, 0.0f};
  for (int i = 0; i < count; ++i) all.x = fmaxf(all.x, scales[i * row].x);
  for (int i = 0; i < count; ++i) {
    const float factor = exp2f(scales[i * row].x - all.x);
    all.y += scales[i * row].y * factor;
    all.z += values[i * row * D] * factor;
  }
  return all;
}

INLINE void finish(Shared& shared, Sums& sums, int place, int G, __nv_bfloat16* out, float* partial,
                   float2* scales) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  sums.weight += __shfl_xor_sync(~0u, sums.weight, 1);
  sums.weight += __shfl_xor_sync(~0u, sums.weight, 2);
  if (t == 0) shared.scales[warp][g] = make_float2(sums.largest, sums.weight);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float* row = &shared.value[warp][2 * t + i % 2][i / 2 * 64 + 8 * g];
#pragma unroll
    for (int j = 0; j < 8; ++j) row[j] = sums.value[j][i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < G * D; i += 32 * WARPS) {
    const int head = i / D, column = i % D;
    const float3 all = join(&shared.scales[0][head], &shared.value[0][head][column], HEADS, WARPS);
    if (place == WHOLE) out[i] = __float2bfloat16(all.z / all.y);
    else partial[place * HEADS * D + i] = all.z;
    if (place != WHOLE && column == 0) scales[place * HEADS + head] = make_float2(all.x, all.y);
  }
  __syncthreads();
}

// The row of scratch that holds a part of one query head.
INLINE size_t part_at(int block_and_head, int place, int g) {
  return (static_cast<size_t>(block_and_head) * PLACES + place) * HEADS + g;
}

// The first tile of range `block`, of `blocks` that share `tiles`; the range of a tile, of `n`.
INLINE int range_start(long long block, int blocks, int tiles) { return block * tiles / blocks; }
INLINE int range_of(long long tile, int n, int tiles) { return ((tile + 1) * n - 1) / tiles; }

INLINE int tokens_of(const int* kv_indptr, const int* last, int b, int P) {
  return (kv_indptr[b + 1] - kv_indptr[b] - 1) * P + last[b];
}

// The sequence that page `place` of the list belongs to.
INLINE int sequence_of(const int* kv_indptr, int B, int place) {
  int low = 0, high = B - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (kv_indptr[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attend(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
           const int* kv_indptr, const int* kv_indices, const int* kv_last_page_len,
           __nv_bfloat16* out, float* partial, float2* scales, int B, int G, int P) {
  kopt::griddepcontrol_launch_dependents();  // blocks of `merge` wait where there is room for them
  __shared__ Shared shared;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int block = blockIdx.x, blocks = gridDim.x, head = blockIdx.y, H = gridDim.y;
  const int each = P / TILE, tiles = kv_indptr[B] * each;
  const int start = range_start(block, blocks, tiles), end = range_start(block + 1, blocks, tiles);
  const Cache cache = {k_cache + head * D, v_cache + head * D, static_cast<size_t>(H) * D, P};
  const size_t part = part_at(block * H + head, 0, 0);
  const float scale = 1.4426950408889634f * 0.08838834764831845f;  // log2(e) / sqrt(128)
  int b = sequence_of(kv_indptr, B, start / each);  // tables are static, and read before the wait
  const int page_at_start = kv_indices[min(start + warp, tiles - 1) / each];
  kopt::griddepcontrol_wait();
  for (; b < B; ++b) {
    const int begin = kv_indptr[b] * each;
    if (begin >= end) break;
    const int tokens = tokens_of(kv_indptr, kv_last_page_len, b, P);
    const int all = (tokens + TILE - 1) / TILE;
    const Segment segment = {kv_indices + kv_indptr[b], max(start - begin, 0),
                             min(end - begin, all), tokens, each};
    if (segment.first >= segment.end) continue;  // nothing but slots behind the last token
    const size_t first_head = (static_cast<size_t>(b) * H + head) * G;
    uint4 query[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      query[c] = g < G ? piece(q + (first_head + g) * D + 32 * c + 8 * t) : make_uint4(0, 0, 0, 0);
    Sums sums = {-INFINITY, 0.0f, {}};
    Tile tile[2];
    int place = segment.first + warp, page = segment.page_of(place + WARPS);
    const int here = begin <= start ? page_at_start : segment.page_of(place);
    if (place < segment.end) load(tile[0], segment, place, here, cache);
    while (place < segment.end) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int next = place + WARPS;
        if (next < segment.end) load(tile[1 - i], segment, next, page, cache);
        page = segment.page_of(next + WARPS);
        if (place < segment.end)
          attend_to(tile[i], query, segment.tokens - place * TILE, scale, sums);
        place = next;
      }
    }
    const int kind = begin < start ? 0 : begin + all > end ? 1 : WHOLE;
    finish(shared, sums, kind, G, out + first_head * D, partial + part * D, scales + part);
  }
}

extern "C" __global__ void __launch_bounds__(D)
    merge(const int* kv_indptr, const int* kv_last_page_len, const float* partial,
          const float2* scales, __nv_bfloat16* out, int blocks, int B, int P) {
  __shared__ __align__(16) float values[D / 32][D];
  __shared__ float2 of_warp[D / 32];
  const int g = blockIdx.x, head = blockIdx.y, b = blockIdx.z, H = gridDim.y, column = threadIdx.x;
  const int warp = column / 32, lane = column % 32;
  const int each = P / TILE, tiles = kv_indptr[B] * each, begin = kv_indptr[b] * each;
  const int ending = begin + (tokens_of(kv_indptr, kv_last_page_len, b, P) - 1) / TILE;
  const int first = range_of(begin, blocks, tiles), last = range_of(ending, blocks, tiles);
  // One block had all of it. Yet the first block waits, so that this grid ends after `attend`.
  if (first == last && g + head + b > 0) return;
  kopt::griddepcontrol_launch_dependents();
  kopt::griddepcontrol_wait();
  if (first == last) return;
  // In the first range the sequence goes on, in the others it began before.
  float4 sum = {};
  float largest = -INFINITY, weight = 0.0f;
#pragma unroll 4
  for (int block = first + warp; block <= last; block += D / 32) {
    const size_t part = part_at(block * H + head, block == first, g);
    const float2 scale = scales[part];
    const float4 more = reinterpret_cast<const float4*>(partial)[part * (D / 4) + lane];
    const float now = fmaxf(largest, scale.x);
    const float shrink = exp2f(largest - now), factor = exp2f(scale.x - now);
    largest = now;
    weight = weight * shrink + scale.y * factor;
    sum.x = sum.x * shrink + more.x * factor, sum.y = sum.y * shrink + more.y * factor;
    sum.z = sum.z * shrink + more.z * factor, sum.w = sum.w * shrink + more.w * factor;
  }
  reinterpret_cast<float4*>(values[warp])[lane] = sum;
  if (lane == 0) of_warp[warp] = make_float2(largest, weight);
  __syncthreads();
  const float3 all = join(of_warp, &values[0][column], 1, D / 32);
  out[((static_cast<size_t>(b) * H + head) * gridDim.x + g) * D + column] =
      __float2bfloat16(all.z / all.y);
}
