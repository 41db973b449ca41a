/* kopt: 1
family: [tensor_cores, async_pipeline, persistent]
note: "tiles of 128x128 by TMA and wgmma: a producer, two consumer warpgroups"
where: "N >= B and B > 0"
tune: {TAKE_TURNS: [0, 1], PERSISTENT: [1, 0]}
tensor_maps:
  q_tiles: {tensor: q, view: "N, H * G * D", box: "128, 64", swizzle: 128}
  k_tiles: {tensor: k, view: "N, H * D", box: "128, 64", swizzle: 128}
  v_tiles: {tensor: v, view: "N, H * D", box: "128, 64", swizzle: 128}
launch:
  - kernel: attend
    grid: "min(H * G * (N // 128 + B), SM_COUNT + (1 - PERSISTENT) * H * G * (N // 128 + B))"
    block: 384
    smem: 197760
    pdl: true
    args: [q_tiles, k_tiles, v_tiles, indptr, out, H, G, B]
*/
// Mapping: a tile is 128 query tokens of one sequence and one query head. It meets tiles of 128
// keys and values from its own down to the first of the sequence; its own alone has tokens that do
// not count. Warpgroup 0 loads, of which one thread works; 1 and 2 attend for 64 query tokens each:
//   logits (64 x 128) = Q . K^T, both in shared memory
//   sums (64 x 128) += P . V, the weights P in registers, rounded to bfloat16
// Thread 4 g + t of a warp has rows g and g + 8 of its 16, of each 8 columns 2 t and 2 t + 1:
// element 4 j + 2 r + i is row g + 8 r, column 8 j + 2 t + i. Eight of them are the operand of 16
// weights. While a softmax is computed, the products of the sums before it run; with TAKE_TURNS
// also those of the other warpgroup. Logits are to the base 2.
// Tiles with many keys come first, and blocks take them to and fro, so that all end about together.
// Shared memory: Q and 2 stages of K and V in two halves of 64 columns, rows of 128 bytes as TMA
// swizzles them; results in rows of 256 bytes. TMA fills with zeros behind the last token. Tokens
// of the next sequence have a weight of 0, or are query tokens that nobody stores.
// Barriers: `*_full` says that bytes are in, `*_empty` that all consumer warps have waited for the
// products that read them. `tile` comes with Q: the producer writes it before it arrives.

#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>
#include <kopt/griddepcontrol.cuh>
#include <kopt/mbarrier.cuh>

#include <cmath>
#include <cstdint>

#define INLINE __device__ __forceinline__
constexpr int D = 128, TILE = 128, GROUP = 128, STAGES = 2, WARPS = 8;
constexpr int HALF = TILE * 64 * 2, TILE_BYTES = 2 * HALF;
constexpr float SCALE = 1.4426950408889634f * 0.08838834764831845f;  // log2(e) / sqrt(128)

struct Tile { int sequence, head, level; };  // of keys the tiles `level` to 0; negative: no more
struct Shared {
  uint8_t q[TILE_BYTES], k[STAGES][TILE_BYTES], v[STAGES][TILE_BYTES];
  uint8_t out[WARPS][16 * D * 2];
  kopt::mbarrier_t q_full, q_empty;
  kopt::mbarrier_t k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
  Tile tile;
};

// A place in a ring of stages: its number, and the parity of the phase that is waited for.
struct Turn {
  int stage = 0;
  uint32_t parity = 0;
  INLINE void advance() {
    parity ^= stage == STAGES - 1;
    stage = (stage + 1) % STAGES;
  }
};

INLINE uint32_t address_of(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Rows of 128 bytes, swizzled; eight of them are 1,024 bytes. Read by columns, 64 of them are
// followed by the other half.
INLINE uint64_t descriptor(const void* tile) {
  const uint64_t address = (address_of(tile) & 0x3ffff) >> 4;
  return address | (uint64_t{HALF} >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// d (64 rows, 128 columns) = or += a . b, both in shared memory, 16 elements of k.
INLINE void multiply(float (&d)[64], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %66, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "l"(a), "l"(b), "r"(adds));
}

// d += a . b, a in registers, b with its columns one behind the other.
INLINE void multiply_add(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Starts the products of 64 query tokens with a tile of keys.
INLINE void start_logits(float (&logits)[64], uint64_t q, uint64_t k) {
#pragma unroll
  for (int i = 0; i < D / 16; ++i) {
    const uint32_t at = (i / 4 * HALF + i % 4 * 32) / 16;
    multiply(logits, q + at, k + at, i > 0);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Starts the products of weights with a tile of values.
INLINE void start_sums(float (&sums)[64], const uint32_t (&weights)[8][4], uint64_t v) {
#pragma unroll
  for (int i = 0; i < TILE / 16; ++i) multiply_add(sums, weights[i], v + i * 16 * 128 / 16);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `LEFT` groups of products are under way; `d` is complete behind it.
template <int LEFT>
INLINE void wait_for(float (&d)[64]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY}, weight[2] = {};  // `weight`: of this thread's columns

  // Turns logits into weights; returns by what earlier sums shrink.
  INLINE float2 take(float (&d)[64]) {
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float now = largest[r];
#pragma unroll
      for (int j = 0; j < 16; ++j) now = fmaxf(now, fmaxf(d[4 * j + 2 * r], d[4 * j + 2 * r + 1]));
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
      shrink[r] = exp2f((largest[r] - now) * SCALE);
      largest[r] = now;
      weight[r] *= shrink[r];
      const float off = now * SCALE;
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& one = d[4 * j + 2 * r + i];
          one = exp2f(one * SCALE - off);
          weight[r] += one;
        }
    }
    return {shrink[0], shrink[1]};
  }
};

INLINE void hide_later_tokens(float (&logits)[64], int row, int column) {
#pragma unroll
  for (int i = 0; i < 64; ++i)
    if (column + i / 4 * 8 + i % 2 > row + i % 4 / 2 * 8) logits[i] = -INFINITY;
}

INLINE uint32_t packed(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

INLINE void pack(uint32_t (&weights)[8][4], const float (&d)[64]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) weights[i / 4][i % 4] = packed(d[2 * i], d[2 * i + 1]);
}

// Stores the 16 rows of a warp, those before `count`, whole rows of 256 bytes at a time.
INLINE void store(const float (&sums)[64], const Softmax& softmax, uint8_t* buffer,
                  __nv_bfloat16* out, size_t row_distance, int count) {
  const int lane = threadIdx.x % 32;
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float all = softmax.weight[r];
    all += __shfl_xor_sync(~0u, all, 1);
    all += __shfl_xor_sync(~0u, all, 2);
    factor[r] = 1.0f / all;
  }
  __syncwarp();  // what the tile before left there has been read
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int row = lane % 16, piece = 2 * j + lane / 16;
    const uint32_t to = address_of(buffer) + row * 256 + (piece ^ row % 8) * 16;
    uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float scale = factor[i % 2];
      r[i] = packed(sums[8 * j + 2 * i] * scale, sums[8 * j + 2 * i + 1] * scale);
    }
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = 2 * i + lane / 16, piece = lane % 16;
    const uint8_t* from = buffer + row * 256 + (piece ^ row % 8) * 16;
    if (row < count)
      *reinterpret_cast<uint4*>(out + row * row_distance + piece * 8) =
          *reinterpret_cast<const uint4*>(from);
  }
}

// Tiles with many keys first: those of level n are of the sequences with more than n tiles.
struct Schedule {
  const int* indptr;
  int sequences, heads, level = -1, first = 0, count = 0;  // tiles of higher levels; of this one

  INLINE int tiles_of(int b) const { return (indptr[b + 1] - indptr[b] + TILE - 1) / TILE; }
  INLINE int with_tiles_above(int n) const {
    int found = 0;
    for (int b = 0; b < sequences; ++b) found += tiles_of(b) > n;
    return found;
  }
  INLINE void begin() {
    for (int b = 0; b < sequences; ++b) level = max(level, tiles_of(b) - 1);
    count = with_tiles_above(level) * heads;
  }
  // Numbers only grow from call to call.
  INLINE Tile find(int number) {
    while (level >= 0 && number >= first + count) {
      first += count;
      count = with_tiles_above(--level) * heads;
    }
    if (level < 0) return {0, 0, -1};
    int sequence = 0;
    for (int before = (number - first) / heads;; ++sequence)
      if (tiles_of(sequence) > level && before-- == 0) break;
    return {sequence, (number - first) % heads, level};
  }
};

INLINE void load_tile(uint8_t* to, const CUtensorMap* map, kopt::mbarrier_t* full, int column,
                      int row) {
  kopt::mbarrier_arrive_expect_tx(full, TILE_BYTES);
  kopt::tma_load_2d(to, map, full, column, row);
  kopt::tma_load_2d(to + HALF, map, full, column + 64, row);
}

INLINE void produce(Shared& s, const CUtensorMap* q_tiles, const CUtensorMap* k_tiles,
                    const CUtensorMap* v_tiles, Schedule schedule, int G) {
  schedule.begin();  // the table is static, and read before the wait
  kopt::griddepcontrol_wait();
  Turn turn{0, 1};  // the phase before the first counts as complete: stages are empty
  uint32_t q_parity = 1;
  for (int round = 0;; ++round, q_parity ^= 1) {
    const int place = round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const Tile tile = schedule.find(round * gridDim.x + place);
    kopt::mbarrier_wait_parity(&s.q_empty, q_parity);
    s.tile = tile;
    if (tile.level < 0) break;
    const int start = schedule.indptr[tile.sequence], column = tile.head / G * D;
    load_tile(s.q, q_tiles, &s.q_full, tile.head * D, start + tile.level * TILE);
    for (int n = tile.level; n >= 0; --n, turn.advance()) {
      kopt::mbarrier_wait_parity(&s.k_empty[turn.stage], turn.parity);
      load_tile(s.k[turn.stage], k_tiles, &s.k_full[turn.stage], column, start + n * TILE);
      kopt::mbarrier_wait_parity(&s.v_empty[turn.stage], turn.parity);
      load_tile(s.v[turn.stage], v_tiles, &s.v_full[turn.stage], column, start + n * TILE);
    }
  }
  kopt::mbarrier_arrive(&s.q_full);
}

// Barrier 1 is the turn of the first consumer, 2 that of the second.
INLINE void wait_for_turn(int consumer) {
  if (TAKE_TURNS) asm volatile("bar.sync %0, 256;" ::"r"(1 + consumer) : "memory");
}
INLINE void give_turn(int consumer) {
  if (TAKE_TURNS) asm volatile("bar.arrive %0, 256;" ::"r"(2 - consumer) : "memory");
}

INLINE void fence_registers() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

INLINE void release_keys(Shared& s, const Turn& keys, bool is_last) {
  kopt::mbarrier_arrive(&s.k_empty[keys.stage]);
  if (is_last) kopt::mbarrier_arrive(&s.q_empty);
}

INLINE void consume(Shared& s, const int* indptr, __nv_bfloat16* out, int heads) {
  const int consumer = threadIdx.x / GROUP - 1, warp = threadIdx.x / 32 - 4;
  const int lane = threadIdx.x % 32, first_row = warp * 16;
  const uint64_t q = descriptor(s.q + consumer * 64 * 128);
  if (consumer == 1) give_turn(consumer);
  float logits[64], sums[64];
  uint32_t weights[8][4];
  Turn keys, values;
  for (uint32_t q_parity = 0;; q_parity ^= 1) {
    kopt::mbarrier_wait_parity(&s.q_full, q_parity);
    const Tile tile = s.tile;
    if (tile.level < 0) break;
    kopt::mbarrier_wait_parity(&s.k_full[keys.stage], keys.parity);
    fence_registers();
    start_logits(logits, q, descriptor(s.k[keys.stage]));
    wait_for<0>(logits);
    __syncwarp();  // all lanes have read `tile`
    if (lane == 0) release_keys(s, keys, tile.level == 0);
    keys.advance();
    hide_later_tokens(logits, first_row + lane / 4, lane % 4 * 2);
    Softmax softmax;
    float2 shrink = softmax.take(logits);
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] = 0.0f;
    for (int n = tile.level;; --n) {
      // The softmax before is on the other side of the loop's edge: ptxas moves this wait up to it.
      wait_for<0>(sums);
      if (n < tile.level) {
        if (lane == 0) kopt::mbarrier_arrive(&s.v_empty[values.stage]);
        values.advance();
      }
#pragma unroll
      for (int i = 0; i < 64; ++i) sums[i] *= i % 4 / 2 ? shrink.y : shrink.x;
      pack(weights, logits);
      if (n == 0) break;
      kopt::mbarrier_wait_parity(&s.k_full[keys.stage], keys.parity);
      wait_for_turn(consumer);
      fence_registers();
      start_logits(logits, q, descriptor(s.k[keys.stage]));
      kopt::mbarrier_wait_parity(&s.v_full[values.stage], values.parity);
      fence_registers();
      start_sums(sums, weights, descriptor(s.v[values.stage]));
      give_turn(consumer);
      wait_for<1>(logits);
      if (lane == 0) release_keys(s, keys, n == 1);
      keys.advance();
      shrink = softmax.take(logits);
    }
    kopt::mbarrier_wait_parity(&s.v_full[values.stage], values.parity);
    fence_registers();
    start_sums(sums, weights, descriptor(s.v[values.stage]));
    wait_for<0>(sums);
    if (lane == 0) kopt::mbarrier_arrive(&s.v_empty[values.stage]);
    values.advance();
    const int token = indptr[tile.sequence] + tile.level * TILE + first_row;
    const size_t row_distance = static_cast<size_t>(heads) * D;
    store(sums, softmax, s.out[warp], out + token * row_distance + tile.head * D, row_distance,
          indptr[tile.sequence + 1] - token);
  }
  if (consumer == 0) wait_for_turn(consumer);  // the last turn that was given
}

extern "C" __global__ void __launch_bounds__(3 * GROUP)
    attend(const __grid_constant__ CUtensorMap q_tiles, const __grid_constant__ CUtensorMap k_tiles,
           const __grid_constant__ CUtensorMap v_tiles, const int* indptr, __nv_bfloat16* out,
           int H, int G, int B) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw + (1024 - address_of(raw) % 1024) % 1024);
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&s.q_full, 1);
    kopt::mbarrier_init(&s.q_empty, WARPS);
    for (int i = 0; i < STAGES; ++i) {
      kopt::mbarrier_init(&s.k_full[i], 1);
      kopt::mbarrier_init(&s.v_full[i], 1);
      kopt::mbarrier_init(&s.k_empty[i], WARPS);
      kopt::mbarrier_init(&s.v_empty[i], WARPS);
    }
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < GROUP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(s, &q_tiles, &k_tiles, &v_tiles, {indptr, B, H * G}, G);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  consume(s, indptr, out, H * G);
}
