/* kopt: 1
family: [tensor_cores, async_pipeline, grid_shape]
note: "few rows: one block an SM by the width of its columns, weights by TMA into wgmma as its 64 rows"
where: "M <= 128 and K % 8 == 0"
tune: {RING_KB: [208, 110], COLUMNS: [64], RANKS: [1], ROWS: [8]}
tensor_maps:
  x_tiles: {tensor: x, box: "ROWS, 64", swizzle: 128}
  weight_tiles: {tensor: weight, box: "COLUMNS, 64", swizzle: 128}
variants:
  - when: M <= 8 and N <= 4224
    set: {ROWS: 8, COLUMNS: 32, RANKS: 1, RING_KB: 190}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: M <= 16 and N <= 4224
    set: {ROWS: 16, COLUMNS: 32, RANKS: 1, RING_KB: 110}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: M <= 16 and N <= 8448
    set: {ROWS: 16, COLUMNS: 64, RANKS: 1}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: M <= 16
    set: {ROWS: 16, COLUMNS: 112, RANKS: 1}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: M <= 64 and N <= 4224
    set: {ROWS: 64, COLUMNS: 64, RANKS: 2}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: M <= 64 and N <= 8448
    set: {ROWS: 64, COLUMNS: 64, RANKS: 1}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: M <= 64
    set: {ROWS: 64, COLUMNS: 112, RANKS: 1}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: N <= 4224
    set: {ROWS: 128, COLUMNS: 64, RANKS: 2}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: N <= 8448
    set: {ROWS: 128, COLUMNS: 64, RANKS: 1}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
  - when: "true"
    set: {ROWS: 128, COLUMNS: 112, RANKS: 1}
    launch: [{kernel: gemm_split, grid: "ceil_div(N, COLUMNS) * RANKS", cluster: RANKS, block: "128 * ceil_div(COLUMNS, 64) + 32", smem: 1024 * RING_KB + 1792, pdl: true, args: [x_tiles, weight_tiles, out, M, N, K]}]
*/
// Mapping: operands change places: columns of out are the 64 rows of wgmma, rows of x its columns. A
// product costs what its rows of x need, 8 at least. A block owns COLUMNS of out, so many that there
// are about as many blocks as SMs (132), and reads its weights from one end of k to the other: none
// waits for another, and nothing but x is read twice. Where COLUMNS are fewer than 64, several chunks
// of k lie on top of one another in these 64 rows, each meets its own rows of x, and what other pairs
// give is dropped. With 17 rows of x and more that would read x too often: there two blocks of a
// cluster share out k, and their sums meet in distributed shared memory.
// All sums are fp32, added in the order of chunks and ranks.
// The last warp loads: weights before it waits for the kernel before, as they are static. A ring
// takes most of an SM's shared memory: two of half the size let the next launch load beside this one,
// and were slower wherever both were measured. TMA fills with zeros beyond the ends of M, N and K.

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>
#include <kopt/griddepcontrol.cuh>
#include <kopt/mbarrier.cuh>

#include <cstdint>

constexpr int CHUNK = 64;                              // of k, 128 bytes
constexpr int PACK = COLUMNS < 64 ? 64 / COLUMNS : 1;  // chunks of k that fill the rows of wgmma
constexpr int STEP = CHUNK * PACK, GROUPS = (COLUMNS + 63) / 64, CONSUMERS = 128 * GROUPS;
constexpr int X_ROWS = ROWS * PACK;
constexpr int X_BYTES = X_ROWS * CHUNK * 2, WEIGHT_BYTES = COLUMNS * STEP * 2;
constexpr int STAGES = RING_KB * 1024 / (X_BYTES + WEIGHT_BYTES);
constexpr int PART = X_ROWS < 64 ? X_ROWS : 64, PARTS = X_ROWS / PART;  // rows of one instruction
constexpr int PITCH = COLUMNS + 4;  // of sums in shared memory, which then meet no bank twice

struct Shared {
  uint8_t weight[STAGES][WEIGHT_BYTES];
  uint8_t x[STAGES][X_BYTES];
  kopt::mbarrier_t full[STAGES], empty[STAGES];
};
static_assert(sizeof(Shared) <= RING_KB * 1024 + 768);
static_assert(STAGES > 1);  // a stage is free once the products of the next one are under way
static_assert(PACK * ROWS * PITCH * 4 <= STAGES * (X_BYTES + WEIGHT_BYTES));
static_assert(COLUMNS % 16 == 0 && (COLUMNS >= 64 || 64 % COLUMNS == 0));

__device__ __forceinline__ uint32_t address_of(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Rows of 128 bytes, swizzled; eight of them are 1,024 bytes.
__device__ __forceinline__ uint64_t descriptor(uint32_t tile) {
  const uint64_t address = (tile & 0x3ffff) >> 4;
  return address | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void multiply(float (&d)[4], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3}, "
      "%4, %5, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b), "r"(adds));
}
__device__ __forceinline__ void multiply(float (&d)[8], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %10, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, "
      "%8, %9, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "l"(a), "l"(b), "r"(adds));
}
__device__ __forceinline__ void multiply(float (&d)[16], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %18, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "%16, %17, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
        "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b), "r"(adds));
}
__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %34, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
        "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
        "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}

// A place in a ring of stages: its number, and the parity of the phase that is waited for.
struct Turn {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

__device__ __forceinline__ void load_x(Shared& s, const CUtensorMap* x, int stage, int step) {
#pragma unroll
  for (int i = 0; i < PACK; ++i)
    kopt::tma_load_2d(s.x[stage] + i * ROWS * CHUNK * 2, x, &s.full[stage],
                      step * STEP + i * CHUNK, 0);
}

__device__ __forceinline__ void load_weight(Shared& s, const CUtensorMap* weight, int stage,
                                            int step, int column) {
  kopt::mbarrier_arrive_expect_tx(&s.full[stage], X_BYTES + WEIGHT_BYTES);
#pragma unroll
  for (int i = 0; i < PACK; ++i)
    kopt::tma_load_2d(s.weight[stage] + i * COLUMNS * CHUNK * 2, weight, &s.full[stage],
                      step * STEP + i * CHUNK, column);
}

__device__ __forceinline__ void load(Shared& s, const CUtensorMap* x, const CUtensorMap* weight,
                                     int first, int end, int column) {
  const int ahead = min(STAGES, end - first);
  for (int i = 0; i < ahead; ++i) load_weight(s, weight, i, first + i, column);
  kopt::griddepcontrol_wait();
  for (int i = 0; i < ahead; ++i) load_x(s, x, i, first + i);
  Turn turn;
  for (int step = first + ahead; step < end; ++step, turn.advance()) {
    kopt::mbarrier_wait_parity(&s.empty[turn.stage], turn.parity);
    load_weight(s, weight, turn.stage, step, column);
    load_x(s, x, turn.stage, step);
  }
}

// Multiplies `steps` steps of k and leaves the sums in shared memory, over the ring that was read.
__device__ __forceinline__ void multiply_all(Shared& s, float* sums, int steps) {
  const int group = threadIdx.x / 128, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  // The first column of this warpgroup; where it has fewer than 64 of its own, some are another's.
  const int own = PACK > 1 ? 0 : min(group * 64, COLUMNS - 64);
  float d[PARTS][PART / 2] = {};
  Turn turn;
  int before = 0;
  for (int step = 0; step < steps; ++step, turn.advance()) {
    kopt::mbarrier_wait_parity(&s.full[turn.stage], turn.parity);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    const uint32_t weight = address_of(s.weight[turn.stage]) + own * CHUNK * 2;
    const uint32_t x = address_of(s.x[turn.stage]);
#pragma unroll
    for (int k = 0; k < CHUNK * 2; k += 32)
#pragma unroll
      for (int part = 0; part < PARTS; ++part)
        multiply(d[part], descriptor(weight + k), descriptor(x + part * PART * CHUNK * 2 + k), 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (step > 0 && threadIdx.x % 128 == 0) kopt::mbarrier_arrive(&s.empty[before]);
    before = turn.stage;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
#pragma unroll
  for (int part = 0; part < PARTS; ++part)
#pragma unroll
    for (int i = 0; i < PART / 2; ++i) {
      const int row = part * PART + i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int column = warp * 16 + lane / 4 + i / 2 % 2 * 8;
      if (PACK == 1) {
        if (own + column >= group * 64) sums[row * PITCH + own + column] = d[part][i];
      } else if (row / ROWS == column / COLUMNS) {  // both of one chunk of k
        sums[row * PITCH + column % COLUMNS] = d[part][i];
      }
    }
}

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32)
    gemm_split(const __grid_constant__ CUtensorMap x_tiles,
               const __grid_constant__ CUtensorMap weight_tiles, __nv_bfloat16* out, int M, int N,
               int K) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw + (1024 - address_of(raw) % 1024) % 1024);
  float* sums = reinterpret_cast<float*>(&s);
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = RANKS > 1 ? cluster.block_rank() : 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      kopt::mbarrier_init(&s.full[i], 1);
      kopt::mbarrier_init(&s.empty[i], GROUPS);
    }
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  kopt::griddepcontrol_launch_dependents();
  const int steps = (K + STEP - 1) / STEP, first = steps * rank / RANKS;
  const int end = steps * (rank + 1) / RANKS;
  const int column = static_cast<int>(blockIdx.x) / RANKS * COLUMNS;
  if (threadIdx.x >= CONSUMERS) {
    if (threadIdx.x == CONSUMERS) load(s, &x_tiles, &weight_tiles, first, end, column);
  } else {
    multiply_all(s, sums, end - first);
    kopt::griddepcontrol_wait();
  }
  if (RANKS > 1) {
    cluster.sync();
  } else {
    __syncthreads();
  }
  if (threadIdx.x < CONSUMERS) {
    for (int i = rank * CONSUMERS + threadIdx.x; i < M * COLUMNS / 2; i += RANKS * CONSUMERS) {
      const int row = i / (COLUMNS / 2), at = i % (COLUMNS / 2) * 2;
      float2 parts[RANKS * PACK];  // all are asked for before the first is used
#pragma unroll
      for (int p = 0; p < RANKS * PACK; ++p) {
        const float* from = sums + (p % PACK * ROWS + row) * PITCH + at;
        if (RANKS > 1) from = cluster.map_shared_rank(from, p / PACK);
        parts[p] = *reinterpret_cast<const float2*>(from);
      }
      float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int p = 0; p < RANKS * PACK; ++p) {
        sum.x += parts[p].x;
        sum.y += parts[p].y;
      }
      __nv_bfloat16* to = out + static_cast<size_t>(row) * N + column + at;
      if (N % 2 == 0 && column + at < N) {
        *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(sum.x, sum.y);
      } else {
        if (column + at < N) to[0] = __float2bfloat16(sum.x);
        if (column + at + 1 < N) to[1] = __float2bfloat16(sum.y);
      }
    }
  }
  if (RANKS > 1) cluster.sync();  // no block ends while others read its sums
}
