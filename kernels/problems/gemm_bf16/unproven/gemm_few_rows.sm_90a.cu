/* kopt: 1
family: [tensor_cores, layout, ilp_unroll]
note: "few rows: weights straight into mma.sync fragments, k split over the warps of a block alone"
where: "M <= 64 and K % 8 == 0"
tune: {WARPS: [8, 4, 16], AHEAD: [4, 2, 8]}
variants:
  - when: M <= 8
    launch:
      - kernel: gemm_8_rows
        grid: ceil_div(N, 16)
        block: 32 * WARPS
        args: [x, weight, out, M, N, K]
  - when: M <= 16
    launch:
      - kernel: gemm_16_rows
        grid: ceil_div(N, 16)
        block: 32 * WARPS
        args: [x, weight, out, M, N, K]
  - when: "true"
    set: {WARPS: 4, AHEAD: 2}
    launch:
      - kernel: gemm_64_rows
        grid: ceil_div(N, 16)
        block: 32 * WARPS
        args: [x, weight, out, M, N, K]
*/
// Mapping: a block owns 16 columns of out for all rows; its warps take turns at 32 elements of k, so
// that only the sums of one block have to be added, in shared memory and in fp32: no partial sum
// leaves the block, and none is rounded.
// Operands change places: 16 rows of weight are A of mma.sync, 8 rows of x are B. Lane 4 g + t loads
// 16 bytes, elements 8 t to 8 t + 7 of the 32, of row g. A product takes elements 2 t, 2 t + 1 and
// 2 t + 8, 2 t + 9 of each lane: which of k they are is the same for both operands, and no sum asks
// for more. So nothing goes through shared memory on the way in.
// Rows beyond M or N are read as the last row, and not stored.

#include <cuda_bf16.h>

#include <cstdint>

constexpr int LANES_K = 32, COLUMNS = 16;

__device__ __forceinline__ void multiply(float (&d)[4], const uint4& low, const uint4& high,
                                         const uint4& x) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(low.x), "r"(high.x), "r"(low.y), "r"(high.y), "r"(x.x), "r"(x.y));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(low.z), "r"(high.z), "r"(low.w), "r"(high.w), "r"(x.z), "r"(x.w));
}

// Returns 8 elements of a row, or zeros where k has ended: K is a multiple of 8.
__device__ __forceinline__ uint4 load(const __nv_bfloat16* row, int k, int K) {
  return k < K ? __ldg(reinterpret_cast<const uint4*>(row + k)) : make_uint4(0, 0, 0, 0);
}

template <int EIGHTS>
__device__ __forceinline__ void few_rows(const __nv_bfloat16* x, const __nv_bfloat16* weight,
                                         __nv_bfloat16* out, int M, int N, int K) {
  __shared__ float sums[WARPS][8 * EIGHTS][COLUMNS + 1];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4;
  const int first = blockIdx.x * COLUMNS;
  const __nv_bfloat16* low = weight + static_cast<size_t>(min(first + group, N - 1)) * K;
  const __nv_bfloat16* high = weight + static_cast<size_t>(min(first + group + 8, N - 1)) * K;
  const __nv_bfloat16* rows[EIGHTS];
#pragma unroll
  for (int i = 0; i < EIGHTS; ++i) rows[i] = x + static_cast<size_t>(min(8 * i + group, M - 1)) * K;

  float d[EIGHTS][4] = {};
  for (int k = warp * LANES_K + lane % 4 * 8; k - lane % 4 * 8 < K; k += WARPS * LANES_K * AHEAD) {
    uint4 weights[AHEAD][2];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      weights[i][0] = load(low, k + i * WARPS * LANES_K, K);
      weights[i][1] = load(high, k + i * WARPS * LANES_K, K);
    }
#pragma unroll
    for (int i = 0; i < AHEAD; ++i)
#pragma unroll
      for (int j = 0; j < EIGHTS; ++j)
        multiply(d[j], weights[i][0], weights[i][1], load(rows[j], k + i * WARPS * LANES_K, K));
  }

#pragma unroll
  for (int i = 0; i < EIGHTS; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sums[warp][8 * i + lane % 4 * 2 + j % 2][group + j / 2 * 8] = d[i][j];
  __syncthreads();
  for (int i = threadIdx.x; i < 8 * EIGHTS * COLUMNS; i += 32 * WARPS) {
    const int row = i / COLUMNS, column = i % COLUMNS;
    if (row >= M || first + column >= N) continue;
    float sum = 0.0f;
    for (int part = 0; part < WARPS; ++part) sum += sums[part][row][column];
    out[static_cast<size_t>(row) * N + first + column] = __float2bfloat16(sum);
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    gemm_8_rows(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int M,
                int N, int K) {
  few_rows<1>(x, weight, out, M, N, K);
}
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    gemm_16_rows(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int M,
                 int N, int K) {
  few_rows<2>(x, weight, out, M, N, K);
}
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    gemm_64_rows(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int M,
                 int N, int K) {
  few_rows<8>(x, weight, out, M, N, K);
}
