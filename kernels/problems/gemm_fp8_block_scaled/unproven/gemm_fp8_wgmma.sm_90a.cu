/* kopt: 1
family: [tensor_cores, async_pipeline, persistent]
note: "tiles of 128 rows by TMA and wgmma, whose sums are scaled and added in fp32 every 128 of k"
where: "N % 8 == 0"
tune: {COLUMNS: [128, 64], BAND: [8, 16, 4]}
tensor_maps:
  x_tiles: {tensor: x, box: "128, 128", swizzle: 128}
  x_scales: {tensor: x_scale, box: "1, 128"}
  weight_tiles: {tensor: weight, box: "COLUMNS, 128", swizzle: 128}
  out_tiles: {tensor: out, box: "64, 64", swizzle: 128}
launch:
  - kernel: gemm_fp8_wgmma
    grid: min(SM_COUNT, ceil_div(M, 128) * ceil_div(N, COLUMNS))
    block: 384
    smem: 200272
    args: [x_tiles, x_scales, weight_tiles, weight_scale, out_tiles, M, N, K]
*/
// Mapping: a block of each SM takes one tile of 128 rows and COLUMNS columns after the other.
// Warpgroup 0 loads, of which one thread works; 1 and 2 multiply 64 rows each and store them. Tiles
// go down BAND tiles of rows before they go to the next columns, so that those of one moment share
// what they read in L2.
// Sums: tensor cores keep few bits of a sum of fp8 products. So 128 products are added there, four
// instructions that begin at 0, and then times their two scales to the sums in fp32. Meanwhile the
// products of the next step are under way, in registers of their own.
// Shared memory: 5 stages of 128 elements of k, 16 KB of x and up to 16 KB of weight, in rows of 128
// bytes as TMA swizzles them, with the 128 scales of x; 16 KB a consumer for its results. TMA fills
// with zeros beyond the ends of M and N, and stores nothing there. Scales beyond M are padding that
// may hold anything: they belong to rows that are not stored.
// Barriers: `full` says that a stage's bytes are in, `empty` that each warp of both consumers has
// taken its scales and waited for the products that read the stage.

#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>
#include <kopt/mbarrier.cuh>

#include <cstdint>

constexpr int ROWS = 128, STEP = 128, STAGES = 5, GROUP = 128, SUMS = COLUMNS / 2;
constexpr int X_BYTES = ROWS * STEP, WEIGHT_BYTES = COLUMNS * STEP, OUT_BYTES = 64 * 64 * 2;

struct Shared {
  uint8_t x[STAGES][X_BYTES];
  uint8_t weight[STAGES][WEIGHT_BYTES];
  uint8_t out[2][COLUMNS / 64][OUT_BYTES];
  float x_scale[STAGES][ROWS];
  kopt::mbarrier_t full[STAGES], empty[STAGES];
};

__device__ __forceinline__ uint32_t address_of(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Rows of 128 bytes, swizzled; eight of them are 1,024 bytes.
__device__ __forceinline__ uint64_t descriptor(uint32_t tile) {
  const uint64_t address = (tile & 0x3ffff) >> 4;
  return address | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

#if COLUMNS == 128
__device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.ne.b32 p, %66, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1;\n\t}"
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
#else
__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.ne.b32 p, %34, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}
#endif

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

struct Tile {
  int row, column;
};
__device__ __forceinline__ Tile tile_of(int number, int row_tiles, int column_tiles) {
  const int band = number / (BAND * column_tiles), in_band = number % (BAND * column_tiles);
  const int band_rows = min(BAND, row_tiles - band * BAND);
  return {(band * BAND + in_band % band_rows) * ROWS, in_band / band_rows * COLUMNS};
}

// Stores a consumer's 64 rows by stmatrix and TMA.
__device__ __forceinline__ void store(const float (&sums)[SUMS],
                                      uint8_t (&buffer)[COLUMNS / 64][OUT_BYTES],
                                      const CUtensorMap* out, Tile tile, int consumer) {
  const int thread = threadIdx.x % GROUP, lane = thread % 32;
  const int row = thread / 32 * 16 + lane % 16;
  // The first thread has started all copies from here: once they have read, all may write.
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
#pragma unroll
  for (int pair = 0; pair < COLUMNS / 16; ++pair) {
    const int piece = pair * 2 + lane / 16;  // 8 columns, of which a box has 8
    const uint32_t to = address_of(buffer[piece / 8]) + row * 128 + ((piece % 8) ^ (row % 8)) * 16;
    uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = (pair * 2 + i / 2) * 4 + i % 2 * 2;
      const __nv_bfloat162 two = __floats2bfloat162_rn(sums[at], sums[at + 1]);
      r[i] = reinterpret_cast<const uint32_t&>(two);
    }
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  }
  kopt::fence_proxy_async();
  asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
  if (thread == 0) {
    for (int box = 0; box < COLUMNS / 64; ++box)
      kopt::tma_store_2d(out, buffer[box], tile.column + box * 64, tile.row + consumer * 64);
    kopt::bulk_commit_group();
  }
}

// One step of k under way: its stage, and the scale of its weights.
struct Step {
  int stage;
  float scale;
};

// Starts the products of the next step, from 0.
__device__ __forceinline__ Step start(float (&d)[SUMS], Shared& s, Turn& turn, int consumer,
                                      const float* scale) {
  const Step step = {turn.stage, __ldg(scale)};
  kopt::mbarrier_wait_parity(&s.full[turn.stage], turn.parity);
  const uint32_t x = address_of(s.x[turn.stage]) + consumer * 64 * STEP;
  const uint32_t weight = address_of(s.weight[turn.stage]);
  turn.advance();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < STEP; k += 32)
    multiply(d, descriptor(x + k), descriptor(weight + k), k > 0);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  return step;
}

// Waits until at most `StepsLeft` steps are under way.
template <int StepsLeft>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(StepsLeft) : "memory");
}

// Adds what a step that has ended gave, times its scales, and hands its stage back.
__device__ __forceinline__ void add(float (&sums)[SUMS], const float (&d)[SUMS], Shared& s,
                                    Step step, int row) {
  const float first = s.x_scale[step.stage][row] * step.scale;
  const float second = s.x_scale[step.stage][row + 8] * step.scale;
  __syncwarp();
  if (threadIdx.x % 32 == 0) kopt::mbarrier_arrive(&s.empty[step.stage]);
#pragma unroll
  for (int i = 0; i < SUMS; ++i) sums[i] += d[i] * (i % 4 < 2 ? first : second);
}

extern "C" __global__ void __launch_bounds__(3 * GROUP)
    gemm_fp8_wgmma(const __grid_constant__ CUtensorMap x_tiles,
                   const __grid_constant__ CUtensorMap x_scales,
                   const __grid_constant__ CUtensorMap weight_tiles, const float* weight_scale,
                   const __grid_constant__ CUtensorMap out_tiles, int M, int N, int K) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw + (1024 - address_of(raw) % 1024) % 1024);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      kopt::mbarrier_init(&s.full[i], 1);
      kopt::mbarrier_init(&s.empty[i], 8);
    }
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  const int row_tiles = (M + ROWS - 1) / ROWS, column_tiles = (N + COLUMNS - 1) / COLUMNS;
  const int tiles = row_tiles * column_tiles, steps = K / STEP;
  if (threadIdx.x < GROUP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      Turn turn{0, 1};  // the phase before the first counts as complete: stages are empty
      for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile = tile_of(number, row_tiles, column_tiles);
        for (int step = 0; step < steps; ++step, turn.advance()) {
          kopt::mbarrier_t* full = &s.full[turn.stage];
          kopt::mbarrier_wait_parity(&s.empty[turn.stage], turn.parity);
          kopt::mbarrier_arrive_expect_tx(full, X_BYTES + WEIGHT_BYTES + ROWS * 4);
          kopt::tma_load_2d(s.x[turn.stage], &x_tiles, full, step * STEP, tile.row);
          kopt::tma_load_2d(s.x_scale[turn.stage], &x_scales, full, tile.row, step);
          kopt::tma_load_2d(s.weight[turn.stage], &weight_tiles, full, step * STEP, tile.column);
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int consumer = threadIdx.x / GROUP - 1, warp = threadIdx.x % GROUP / 32;
  const int row = consumer * 64 + warp * 16 + threadIdx.x % 32 / 4;  // and the eighth after
  Turn turn;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Tile tile = tile_of(number, row_tiles, column_tiles);
    // All columns of a tile lie in one block of weights.
    const float* of_weight = weight_scale + static_cast<size_t>(tile.column / STEP) * steps;
    float sums[SUMS] = {};
    float even[SUMS], odd[SUMS];
    Step first = start(even, s, turn, consumer, of_weight);
    int started = 1;
    for (; started + 1 < steps; started += 2) {
      const Step second = start(odd, s, turn, consumer, of_weight + started);
      wait<1>();
      add(sums, even, s, first, row);
      first = start(even, s, turn, consumer, of_weight + started + 1);
      wait<1>();
      add(sums, odd, s, second, row);
    }
    if (started < steps) {
      const Step second = start(odd, s, turn, consumer, of_weight + started);
      wait<1>();
      add(sums, even, s, first, row);
      wait<0>();
      add(sums, odd, s, second, row);
    } else {
      wait<0>();
      add(sums, even, s, first, row);
    }
    store(sums, s.out[consumer], &out_tiles, tile, consumer);
  }
  kopt::bulk_wait_group<0>();
}
