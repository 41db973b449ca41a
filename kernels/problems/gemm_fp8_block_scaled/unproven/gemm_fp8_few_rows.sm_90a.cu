/* kopt: 1
family: [tensor_cores, layout, clusters]
note: "few rows: weights straight into mma.sync fragments, k split over warps and blocks of a cluster"
where: "M <= 128"
tune: {COLUMNS: [64, 32, 16], PARTS: [2, 4, 1, 8], SPLIT: [4, 2, 8, 1], AHEAD: [2, 1, 4]}
tune_where: [COLUMNS * PARTS <= 128]
variants:
  - when: M <= 8
    launch:
      - kernel: gemm_fp8_8_rows
        grid: ceil_div(N, COLUMNS) * SPLIT
        block: COLUMNS * PARTS * 2
        cluster: SPLIT
        args: [x, x_scale, weight, weight_scale, out, M, N, K, MP]
  - when: M <= 64
    launch:
      - kernel: gemm_fp8_64_rows
        grid: ceil_div(N, COLUMNS) * SPLIT
        block: COLUMNS * PARTS * 2
        cluster: SPLIT
        args: [x, x_scale, weight, weight_scale, out, M, N, K, MP]
  - when: "true"
    set: {PARTS: 1}
    launch:
      - kernel: gemm_fp8_128_rows
        grid: ceil_div(N, COLUMNS) * SPLIT
        block: COLUMNS * 4
        cluster: SPLIT
        args: [x, x_scale, weight, weight_scale, out, M, N, K, MP]
*/
// Mapping: a cluster owns COLUMNS columns of out for all rows. A warp has 16 of them, for 8 or 64
// rows, and takes turns with the others of these columns, PARTS in each of SPLIT blocks, at blocks
// of 128 elements of k.
// Sums: tensor cores keep few bits of a sum of fp8 products. So 128 products are added there, four
// instructions that begin at 0, and then times their two scales to the sums in fp32. These meet in
// shared memory, in fp32, and each block of the cluster adds and stores its share of them: no
// partial sum leaves the cluster, and none is rounded.
// Operands change places: 16 rows of weight are A of mma.sync, 8 rows of x are B. Lane 4 g + t loads
// 16 bytes, elements 16 t to 16 t + 15 of 64, of row g. A product takes elements 4 t to 4 t + 3 and
// 4 t + 16 to 4 t + 19 of each lane: which of k they are is the same for both operands, and no sum
// asks for more. So nothing goes through shared memory on the way in.
// Rows beyond M or N are read as the last row, and not stored. Scales of x beyond M are padding that
// may hold anything: they belong to such rows.

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

constexpr int STEP = 128, SIXTEENS = COLUMNS / 16;

__device__ __forceinline__ void multiply(float (&d)[4], const uint4& low, const uint4& high,
                                         const uint4& x) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(low.x), "r"(high.x), "r"(low.y), "r"(high.y), "r"(x.x), "r"(x.y));
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(low.z), "r"(high.z), "r"(low.w), "r"(high.w), "r"(x.z), "r"(x.w));
}

// A row of x or weight in blocks of 128 elements, from a lane's first ones on.
struct Row {
  const uint4* first;
  __device__ __forceinline__ Row(const __nv_fp8_e4m3* matrix, int row, int K)
      : first(reinterpret_cast<const uint4*>(matrix + static_cast<size_t>(row) * K) +
              threadIdx.x % 4) {}
  // Returns a lane's 16 bytes of either half of a block, or zeros where there is no such block.
  __device__ __forceinline__ uint4 half(int block, int which, int blocks) const {
    return block < blocks ? __ldg(first + block * (STEP / 16) + which * 4)
                          : make_uint4(0, 0, 0, 0);
  }
};

// GROUPS warps that share columns and blocks of k have EIGHTS times 8 rows each; SHARES of them have
// the same rows and columns, and other blocks of k.
template <int EIGHTS, int GROUPS, int SHARES>
__device__ __forceinline__ void few_rows(const __nv_fp8_e4m3* x, const float* x_scale,
                                         const __nv_fp8_e4m3* weight, const float* weight_scale,
                                         __nv_bfloat16* out, int M, int N, int K, int MP) {
  constexpr int ROWS = 8 * EIGHTS * GROUPS;
  constexpr int TURNS = SPLIT * SHARES;  // blocks of k from one of a warp to its next
  __shared__ float sums[SHARES][ROWS][COLUMNS + 1];
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = blockIdx.x % SPLIT, tile = blockIdx.x / SPLIT * COLUMNS, blocks = K / STEP;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4;
  const int part = warp / SIXTEENS % SHARES, top = warp / SIXTEENS / SHARES * 8 * EIGHTS;
  const int column = warp % SIXTEENS * 16, first = tile + column;
  const Row low(weight, min(first + group, N - 1), K);
  const Row high(weight, min(first + group + 8, N - 1), K);
  // Sixteen columns lie in one block of weights.
  const float* of_weight = weight_scale + static_cast<size_t>(min(first, N - 1) / STEP) * blocks;

  float total[EIGHTS][4] = {};
  for (int begin = rank * SHARES + part; begin < blocks; begin += TURNS * AHEAD) {
    uint4 weights[AHEAD][2][2];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int block = begin + i * TURNS;
        weights[i][half][0] = low.half(block, half, blocks);
        weights[i][half][1] = high.half(block, half, blocks);
      }
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      const int block = begin + i * TURNS;
      if (block >= blocks) break;
      const float scale = __ldg(of_weight + block);
#pragma unroll
      for (int j = 0; j < EIGHTS; ++j) {
        const Row row(x, min(top + 8 * j + group, M - 1), K);
        float d[4] = {};
        multiply(d, weights[i][0][0], weights[i][0][1], row.half(block, 0, blocks));
        multiply(d, weights[i][1][0], weights[i][1][1], row.half(block, 1, blocks));
        const int pair = min(top + 8 * j + lane % 4 * 2, MP - 2);
        const float2 of_x = __ldg(
            reinterpret_cast<const float2*>(x_scale + static_cast<size_t>(block) * MP + pair));
        total[j][0] += d[0] * (of_x.x * scale);
        total[j][1] += d[1] * (of_x.y * scale);
        total[j][2] += d[2] * (of_x.x * scale);
        total[j][3] += d[3] * (of_x.y * scale);
      }
    }
  }

#pragma unroll
  for (int j = 0; j < EIGHTS; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sums[part][top + 8 * j + lane % 4 * 2 + i % 2][column + group + i / 2 * 8] = total[j][i];
  cluster.sync();
  for (int i = rank * blockDim.x + threadIdx.x; i < ROWS * COLUMNS; i += SPLIT * blockDim.x) {
    const int row = i / COLUMNS, place = i % COLUMNS;
    if (row >= M || tile + place >= N) continue;
    float sum = 0.0f;
    for (int other = 0; other < SPLIT; ++other)
      for (int p = 0; p < SHARES; ++p)
        sum += *cluster.map_shared_rank(&sums[p][row][place], other);
    out[static_cast<size_t>(row) * N + tile + place] = __float2bfloat16(sum);
  }
  cluster.sync();  // others have read this block's sums
}

extern "C" __global__ void __launch_bounds__(COLUMNS * PARTS * 2)
    gemm_fp8_8_rows(const __nv_fp8_e4m3* x, const float* x_scale, const __nv_fp8_e4m3* weight,
                    const float* weight_scale, __nv_bfloat16* out, int M, int N, int K, int MP) {
  few_rows<1, 1, PARTS>(x, x_scale, weight, weight_scale, out, M, N, K, MP);
}
extern "C" __global__ void __launch_bounds__(COLUMNS * PARTS * 2)
    gemm_fp8_64_rows(const __nv_fp8_e4m3* x, const float* x_scale, const __nv_fp8_e4m3* weight,
                     const float* weight_scale, __nv_bfloat16* out, int M, int N, int K, int MP) {
  few_rows<8, 1, PARTS>(x, x_scale, weight, weight_scale, out, M, N, K, MP);
}
extern "C" __global__ void __launch_bounds__(COLUMNS * 4)
    gemm_fp8_128_rows(const __nv_fp8_e4m3* x, const float* x_scale, const __nv_fp8_e4m3* weight,
                      const float* weight_scale, __nv_bfloat16* out, int M, int N, int K, int MP) {
  few_rows<8, 2, 1>(x, x_scale, weight, weight_scale, out, M, N, K, MP);
}
