/* kopt: 1
family: [tensor_cores, async_pipeline, bank_conflicts]
note: "tiles of 128x128 by cp.async in 3 stages, swizzled, ldmatrix and mma.sync; any M and N"
where: "K % 8 == 0"
tune: {STAGES: [3, 4], BAND: [8, 16]}
launch:
  - kernel: gemm_mma
    grid: ceil_div(M, 128) * ceil_div(N, 128)
    block: 256
    smem: 32768 * STAGES
    args: [x, weight, out, M, N, K]
*/
// Mapping: a block owns a tile of 128x128 of out, each of its 8 warps 64x32 of it. Blocks go down
// BAND tiles of rows before they go to the next columns, so that those that run together share what
// they read in L2.
// Shared memory: STAGES stages of 128 rows of x and of weight, 64 elements (128 bytes) of k each; a
// piece of 16 bytes lies at its place XOR its row's last three bits, so that the 8 rows of a matrix
// lie in different banks. Rows beyond M or N are read as the last row, and not stored; k beyond K,
// a multiple of 8, is zeros.
// The barrier of a step says that its stage is in and that all are done with the one before, which
// is filled next.

#include <cuda_bf16.h>

#include <cstdint>

constexpr int TILE = 128, STEP = 64, PIECES = STEP / 8, THREADS = 256;
constexpr int STAGE_BYTES = 2 * TILE * STEP * 2;

__device__ __forceinline__ uint32_t place(uint32_t tile, int row, int piece) {
  return tile + (row * PIECES + (piece ^ row % 8)) * 16;
}
// Copies 16 bytes, or fills them with zeros and reads nothing.
__device__ __forceinline__ void copy_16(uint32_t to, const __nv_bfloat16* from, bool is_inside) {
  const uint32_t bytes = is_inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Starts the copies of one operand's rows: thread t takes piece t % 8 of rows t / 8, t / 8 + 32, ...
__device__ __forceinline__ void start_copies(uint32_t tile, const __nv_bfloat16* matrix, int first,
                                             int rows, int K, int k) {
  const int piece = threadIdx.x % PIECES, column = k + piece * 8;
  const bool is_inside = column < K;
#pragma unroll
  for (int row = threadIdx.x / PIECES; row < TILE; row += THREADS / PIECES) {
    const size_t from = static_cast<size_t>(min(first + row, rows - 1)) * K;
    copy_16(place(tile, row, piece), matrix + from + (is_inside ? column : 0), is_inside);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_mma(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int M, int N,
             int K) {
  extern __shared__ __align__(128) uint8_t stages[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
  const int row_tiles = (M + TILE - 1) / TILE, column_tiles = (N + TILE - 1) / TILE;
  const int band = blockIdx.x / (BAND * column_tiles), in_band = blockIdx.x % (BAND * column_tiles);
  const int band_rows = min(BAND, row_tiles - band * BAND);
  const int tile_row = (band * BAND + in_band % band_rows) * TILE;
  const int tile_column = in_band / band_rows * TILE;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_row = warp / 4 * 64, first_column = warp % 4 * 32;
  const int steps = (K + STEP - 1) / STEP;
  float sums[4][4][4] = {};

  const auto start_stage = [&](int step) {
    if (step < steps) {
      const uint32_t stage = shared + step % STAGES * STAGE_BYTES;
      start_copies(stage, x, tile_row, M, K, step * STEP);
      start_copies(stage + STAGE_BYTES / 2, weight, tile_column, N, K, step * STEP);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");  // an empty one at the end: counts go on
  };

  for (int step = 0; step < STAGES - 1; ++step) start_stage(step);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    start_stage(step + STAGES - 1);
    const uint32_t rows = shared + step % STAGES * STAGE_BYTES, columns = rows + STAGE_BYTES / 2;
#pragma unroll
    for (int k = 0; k < PIECES; k += 2) {  // 16 elements of k are two pieces
      uint32_t a[4][4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        load_matrices(a[i], place(rows, first_row + i * 16 + lane % 16, k + lane / 16));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        load_matrices(b[i], place(columns, first_column + i * 16 + lane / 16 * 8 + lane % 8,
                                  k + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          multiply(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = tile_row + first_row + i * 16 + half * 8 + lane / 4;
        const int column = tile_column + first_column + j * 8 + lane % 4 * 2;
        const float one = sums[i][j][half * 2], other = sums[i][j][half * 2 + 1];
        __nv_bfloat16* to = out + static_cast<size_t>(row) * N + column;
        if (row >= M || column >= N) continue;
        if (N % 2 == 0) {
          *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(one, other);
        } else {  // rows of out begin at any multiple of 2 bytes
          to[0] = __float2bfloat16(one);
          if (column + 1 < N) to[1] = __float2bfloat16(other);
        }
      }
    }
  }
}
