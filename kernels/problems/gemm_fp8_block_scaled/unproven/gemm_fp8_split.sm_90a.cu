/* kopt: 1
family: [tensor_cores, async_pipeline, clusters]
note: "few rows: weights by TMA into wgmma as its 64 rows, scaled into fp32, k split over a cluster"
where: "M <= 128 and N % 2 == 0"
tune: {BLOCKS: [256, 128, 512], RING_KB: [48, 96, 64, 192], ROWS: [8], GROUPS: [1, 2]}
tensor_maps:
  x_tiles: {tensor: x, box: "ROWS, 128", swizzle: 128}
  x_scales: {tensor: x_scale, box: "1, ROWS"}
  weight_tiles: {tensor: weight, box: "64 * GROUPS, 128", swizzle: 128}
variants:
  - when: M <= 8
    launch:
      - kernel: gemm_fp8_split
        grid: ceil_div(N, 64 * GROUPS) * max(1, min(8, BLOCKS // ceil_div(N, 64 * GROUPS)))
        cluster: max(1, min(8, BLOCKS // ceil_div(N, 64 * GROUPS)))
        block: 128 * GROUPS + 32
        smem: 1024 * RING_KB + 1280
        pdl: true
        args: [x_tiles, x_scales, weight_tiles, weight_scale, out, M, N, K]
  - when: M <= 64
    set: {ROWS: 64, RING_KB: 66}
    launch:
      - kernel: gemm_fp8_split
        grid: ceil_div(N, 64 * GROUPS) * max(1, min(8, BLOCKS // ceil_div(N, 64 * GROUPS)))
        cluster: max(1, min(8, BLOCKS // ceil_div(N, 64 * GROUPS)))
        block: 128 * GROUPS + 32
        smem: 1024 * RING_KB + 1280
        pdl: true
        args: [x_tiles, x_scales, weight_tiles, weight_scale, out, M, N, K]
  - when: "true"
    set: {ROWS: 128, GROUPS: 2, RING_KB: 98, BLOCKS: 96}
    launch:
      - kernel: gemm_fp8_split
        grid: ceil_div(N, 64 * GROUPS) * max(1, min(8, BLOCKS // ceil_div(N, 64 * GROUPS)))
        cluster: max(1, min(8, BLOCKS // ceil_div(N, 64 * GROUPS)))
        block: 128 * GROUPS + 32
        smem: 1024 * RING_KB + 1280
        pdl: true
        args: [x_tiles, x_scales, weight_tiles, weight_scale, out, M, N, K]
*/
// Mapping: operands change places, so that 64 columns of out are the rows of wgmma and the rows of x
// its columns: a product costs what its rows of x need, 8 at least. A cluster owns 64 columns a
// consumer warpgroup; its blocks share out the steps of k, 128 elements each, and keep as many bytes
// of weight under way as their rings hold. Tensor cores keep few bits of a sum of fp8 products: they
// add those of one step, from 0, which then go times their two scales to the sums in fp32. At the end
// every block adds a part of the columns over the cluster, through distributed shared memory, in fp32
// and in the order of the ranks.
// The last warp loads: weights before it waits for the kernel before, as they are static. The ring is
// so small that the next launch finds room for its own beside it. TMA fills with zeros beyond the
// ends of M and N. Scales of x beyond M are padding that may hold anything: no such row is stored.

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>
#include <kopt/griddepcontrol.cuh>
#include <kopt/mbarrier.cuh>

#include <cstdint>

constexpr int MOST_RANKS = 8, STEP = 128, COLUMNS = 64 * GROUPS, CONSUMERS = 128 * GROUPS;
constexpr int X_BYTES = ROWS * STEP, WEIGHT_BYTES = COLUMNS * STEP;
constexpr int SCALES = ROWS < 32 ? 32 : ROWS;  // a stage's begin at a multiple of 128 bytes
constexpr int STAGES = RING_KB * 1024 / (X_BYTES + WEIGHT_BYTES + SCALES * 4);
constexpr int PART = ROWS < 64 ? ROWS : 64, PARTS = ROWS / PART;  // rows of x of one instruction
constexpr int PITCH = COLUMNS + 4;  // of sums in shared memory, which then meet no bank twice

struct Shared {
  uint8_t weight[STAGES][WEIGHT_BYTES];
  uint8_t x[STAGES][X_BYTES];
  float x_scale[STAGES][SCALES];
  kopt::mbarrier_t full[STAGES], empty[STAGES];
};
static_assert(sizeof(Shared) <= RING_KB * 1024 + 256);
static_assert(ROWS * PITCH * 4 <= STAGES * (X_BYTES + WEIGHT_BYTES));

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
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3}, "
      "%4, %5, p, 1, 1;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b), "r"(adds));
}
__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %34, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1;\n\t}"
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

struct Tiles {
  const CUtensorMap *x, *x_scale, *weight;
};

// Starts the loads of what depends on the kernel before: a step's rows of x and their scales.
__device__ __forceinline__ void load_x(Shared& s, const Tiles& tiles, int stage, int step) {
  kopt::tma_load_2d(s.x[stage], tiles.x, &s.full[stage], step * STEP, 0);
  kopt::tma_load_2d(s.x_scale[stage], tiles.x_scale, &s.full[stage], 0, step);
}

__device__ __forceinline__ void load_weight(Shared& s, const Tiles& tiles, int stage, int step,
                                            int column) {
  kopt::mbarrier_arrive_expect_tx(&s.full[stage], X_BYTES + WEIGHT_BYTES + ROWS * 4);
  kopt::tma_load_2d(s.weight[stage], tiles.weight, &s.full[stage], step * STEP, column);
}

__device__ __forceinline__ void load(Shared& s, const Tiles& tiles, int first, int end,
                                     int column) {
  const int ahead = min(STAGES, end - first);
  for (int i = 0; i < ahead; ++i) load_weight(s, tiles, i, first + i, column);
  kopt::griddepcontrol_wait();
  for (int i = 0; i < ahead; ++i) load_x(s, tiles, i, first + i);
  Turn turn;
  for (int step = first + ahead; step < end; ++step, turn.advance()) {
    kopt::mbarrier_wait_parity(&s.empty[turn.stage], turn.parity);
    load_weight(s, tiles, turn.stage, step, column);
    load_x(s, tiles, turn.stage, step);
  }
}

// Multiplies `steps` steps of k, the first scale of whose weights is given, and leaves the sums in
// shared memory, over the ring that was read.
__device__ __forceinline__ void multiply_all(Shared& s, float* sums, const float* weight_scale,
                                             int steps) {
  const int group = threadIdx.x / 128, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  float total[PARTS][PART / 2] = {};
  Turn turn;
  for (int step = 0; step < steps; ++step, turn.advance()) {
    float d[PARTS][PART / 2];
    const float of_weight = __ldg(weight_scale + step);
    kopt::mbarrier_wait_parity(&s.full[turn.stage], turn.parity);
    const uint32_t weight = address_of(s.weight[turn.stage]) + group * 64 * STEP;
    const uint32_t x = address_of(s.x[turn.stage]);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < STEP; k += 32)
#pragma unroll
      for (int part = 0; part < PARTS; ++part)
        multiply(d[part], descriptor(weight + k), descriptor(x + part * PART * STEP + k), k > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int part = 0; part < PARTS; ++part)
#pragma unroll
      for (int i = 0; i < PART / 2; i += 4) {
        const float* pair = &s.x_scale[turn.stage][part * PART + i * 2 + lane % 4 * 2];
        float2 scale = *reinterpret_cast<const float2*>(pair);
        scale.x *= of_weight;
        scale.y *= of_weight;
        total[part][i] += d[part][i] * scale.x;
        total[part][i + 1] += d[part][i + 1] * scale.y;
        total[part][i + 2] += d[part][i + 2] * scale.x;
        total[part][i + 3] += d[part][i + 3] * scale.y;
      }
    __syncwarp();
    if (lane == 0) kopt::mbarrier_arrive(&s.empty[turn.stage]);
  }
  asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
#pragma unroll
  for (int part = 0; part < PARTS; ++part)
#pragma unroll
    for (int i = 0; i < PART / 2; ++i) {
      const int row = part * PART + i / 4 * 8 + lane % 4 * 2 + i % 2;
      sums[row * PITCH + group * 64 + warp * 16 + lane / 4 + i / 2 % 2 * 8] = total[part][i];
    }
}

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32)
    gemm_fp8_split(const __grid_constant__ CUtensorMap x_tiles,
                   const __grid_constant__ CUtensorMap x_scales,
                   const __grid_constant__ CUtensorMap weight_tiles, const float* weight_scale,
                   __nv_bfloat16* out, int M, int N, int K) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw + (1024 - address_of(raw) % 1024) % 1024);
  float* sums = reinterpret_cast<float*>(&s);
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = cluster.block_rank(), ranks = cluster.num_blocks();
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      kopt::mbarrier_init(&s.full[i], 1);
      kopt::mbarrier_init(&s.empty[i], 4 * GROUPS);
    }
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  kopt::griddepcontrol_launch_dependents();
  const int steps = K / STEP, first = steps * rank / ranks;
  const int end = steps * (rank + 1) / ranks, column = static_cast<int>(blockIdx.x) / ranks * COLUMNS;
  if (threadIdx.x >= CONSUMERS) {
    const Tiles tiles{&x_tiles, &x_scales, &weight_tiles};
    if (threadIdx.x == CONSUMERS) load(s, tiles, first, end, column);
  } else {
    // A warpgroup's 64 columns lie in one block of weights; those beyond N have none.
    const int block = min(column + static_cast<int>(threadIdx.x) / 128 * 64, N - 1) / STEP;
    multiply_all(s, sums, weight_scale + static_cast<size_t>(block) * steps + first, end - first);
    kopt::griddepcontrol_wait();
  }
  cluster.sync();
  if (threadIdx.x < CONSUMERS) {
    for (int i = rank * CONSUMERS + threadIdx.x; i < M * COLUMNS / 2; i += ranks * CONSUMERS) {
      const int row = i / (COLUMNS / 2), at = i % (COLUMNS / 2) * 2;
      float2 parts[MOST_RANKS];  // all are asked for before the first is used
#pragma unroll
      for (int r = 0; r < MOST_RANKS; ++r)
        if (r < ranks) {
          const float* other = cluster.map_shared_rank(sums, r) + row * PITCH + at;
          parts[r] = *reinterpret_cast<const float2*>(other);
        }
      float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int r = 0; r < MOST_RANKS; ++r)
        if (r < ranks) {
          sum.x += parts[r].x;
          sum.y += parts[r].y;
        }
      if (column + at < N)
        *reinterpret_cast<__nv_bfloat162*>(out + static_cast<size_t>(row) * N + column + at) =
            __floats2bfloat162_rn(sum.x, sum.y);
    }
  }
  cluster.sync();  // no block ends while others read its sums
}
