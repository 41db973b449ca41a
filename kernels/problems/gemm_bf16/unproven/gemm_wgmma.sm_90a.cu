/* kopt: 1
family: [tensor_cores, async_pipeline, persistent]
note: "tiles of 128x256 by TMA and wgmma: a producer warp, two consumer warpgroups, stores by TMA"
where: "N % 8 == 0 and K % 8 == 0"
tune: {BAND: [8, 16, 4]}
tensor_maps:
  x_tiles: {tensor: x, box: "128, 64", swizzle: 128}
  weight_tiles: {tensor: weight, box: "256, 64", swizzle: 128}
  out_tiles: {tensor: out, box: "64, 64", swizzle: 128}
launch:
  - kernel: gemm_wgmma
    grid: min(SM_COUNT, ceil_div(M, 128) * ceil_div(N, 256))
    block: 384
    smem: 230464
    args: [x_tiles, weight_tiles, out_tiles, M, N, K]
*/
// Mapping: a block of each SM takes one tile of 128x256 after the other. Warpgroup 0 loads, of which
// one thread works; 1 and 2 multiply 64 rows each and store them. Tiles go down BAND tiles of rows
// before they go to the next columns, so that those of one moment share what they read in L2.
// Shared memory: 4 stages of 64 elements of k, 16 KB of x and 32 KB of weight, in rows of 128 bytes
// as TMA swizzles them; 16 KB a consumer for half of its results. TMA fills with zeros beyond the
// ends of M, N and K, and stores nothing there.
// Barriers: `full` says that a stage's bytes are in, `empty` that both consumers have waited for the
// products that read it: with one product under way that is the stage before.

#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>
#include <kopt/mbarrier.cuh>

#include <cstdint>

constexpr int ROWS = 128, COLUMNS = 256, STEP = 64, STAGES = 4, GROUP = 128;
constexpr int X_BYTES = ROWS * STEP * 2, WEIGHT_BYTES = COLUMNS * STEP * 2;
constexpr int OUT_BYTES = 64 * 64 * 2, HALF = COLUMNS / 2;

struct Shared {
  uint8_t x[STAGES][X_BYTES];
  uint8_t weight[STAGES][WEIGHT_BYTES];
  uint8_t out[2][2][OUT_BYTES];
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

__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.ne.b32 p, %130, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
      "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, "
      "%69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "
      "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, "
      "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "
      "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
        "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),
        "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]),
        "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
        "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]),
        "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]),
        "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]),
        "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
        "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
        "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),
        "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]),
        "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]),
        "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
        "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]),
        "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
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

struct Tile {
  int row, column;
};
__device__ __forceinline__ Tile tile_of(int number, int row_tiles, int column_tiles) {
  const int band = number / (BAND * column_tiles), in_band = number % (BAND * column_tiles);
  const int band_rows = min(BAND, row_tiles - band * BAND);
  return {(band * BAND + in_band % band_rows) * ROWS, in_band / band_rows * COLUMNS};
}

// Stores a consumer's 64 rows, half of the columns at a time, by stmatrix and TMA.
__device__ __forceinline__ void store(const float (&d)[128], uint8_t (&buffer)[2][OUT_BYTES],
                                      const CUtensorMap* out, Tile tile, int consumer) {
  const int thread = threadIdx.x % GROUP, lane = thread % 32;
  const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // The first thread has started all copies from here: once they have read, all may write.
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
#pragma unroll
    for (int pair = 0; pair < HALF / 16; ++pair) {
      const int piece = pair * 2 + lane / 16;  // 8 columns, of which a box has 8
      const uint32_t to =
          address_of(buffer[piece / 8]) + row * 128 + ((piece % 8) ^ (row % 8)) * 16;
      uint32_t r[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = (half * HALF / 8 + pair * 2 + i / 2) * 4 + i % 2 * 2;
        const __nv_bfloat162 two = __floats2bfloat162_rn(d[at], d[at + 1]);
        r[i] = reinterpret_cast<const uint32_t&>(two);
      }
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                   "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                   : "memory");
    }
    kopt::fence_proxy_async();
    asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
    if (thread == 0) {
      for (int box = 0; box < 2; ++box)
        kopt::tma_store_2d(out, buffer[box], tile.column + half * HALF + box * 64,
                           tile.row + consumer * 64);
      kopt::bulk_commit_group();
    }
  }
}

extern "C" __global__ void __launch_bounds__(3 * GROUP)
    gemm_wgmma(const __grid_constant__ CUtensorMap x_tiles,
               const __grid_constant__ CUtensorMap weight_tiles,
               const __grid_constant__ CUtensorMap out_tiles, int M, int N, int K) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw + (1024 - address_of(raw) % 1024) % 1024);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      kopt::mbarrier_init(&s.full[i], 1);
      kopt::mbarrier_init(&s.empty[i], 2);
    }
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  const int row_tiles = (M + ROWS - 1) / ROWS, column_tiles = (N + COLUMNS - 1) / COLUMNS;
  const int tiles = row_tiles * column_tiles, steps = (K + STEP - 1) / STEP;
  if (threadIdx.x < GROUP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      Turn turn{0, 1};  // the phase before the first counts as complete: stages are empty
      for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile = tile_of(number, row_tiles, column_tiles);
        for (int step = 0; step < steps; ++step, turn.advance()) {
          kopt::mbarrier_t* full = &s.full[turn.stage];
          kopt::mbarrier_wait_parity(&s.empty[turn.stage], turn.parity);
          kopt::mbarrier_arrive_expect_tx(full, X_BYTES + WEIGHT_BYTES);
          kopt::tma_load_2d(s.x[turn.stage], &x_tiles, full, step * STEP, tile.row);
          kopt::tma_load_2d(s.weight[turn.stage], &weight_tiles, full, step * STEP, tile.column);
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int consumer = threadIdx.x / GROUP - 1;
  const bool is_first = threadIdx.x % GROUP == 0;
  float d[128];
  Turn turn;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    int before = turn.stage;
    for (int step = 0; step < steps; ++step, turn.advance()) {
      kopt::mbarrier_wait_parity(&s.full[turn.stage], turn.parity);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      const uint32_t x = address_of(s.x[turn.stage]) + consumer * 64 * STEP * 2;
      const uint32_t weight = address_of(s.weight[turn.stage]);
#pragma unroll
      for (int k = 0; k < STEP * 2; k += 32)
        multiply(d, descriptor(x + k), descriptor(weight + k), step > 0 || k > 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (step > 0 && is_first) kopt::mbarrier_arrive(&s.empty[before]);
      before = turn.stage;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (is_first) kopt::mbarrier_arrive(&s.empty[before]);
    store(d, s.out[consumer], &out_tiles, tile_of(number, row_tiles, column_tiles), consumer);
  }
  kopt::bulk_wait_group<0>();
}
