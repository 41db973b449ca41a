/* kopt: 1
family: smem_tiling
note: "starting point: tiles of 64x64 through shared memory in fp32, 4x4 sums a thread, no tensor cores"
where: "true"
tune: {STEP: [16, 32]}
launch:
  - kernel: gemm_bf16_kernel
    grid: ceil_div(N, 64), ceil_div(M, 64)
    block: 256
    args: [x, weight, out, M, N, K]
*/
// Mapping: block (b, a) owns rows 64 a and on of out, columns 64 b and on; thread t the rows
// t / 16 + 16 i and the columns t % 16 + 16 j of its tile, i and j from 0 to 3.
// Shared memory holds STEP columns of k of both operands, as zeros where the operands end. Barriers
// stand before a tile is read and before it is filled again.

#include <cuda_bf16.h>

constexpr int TILE = 64, THREADS = 256, EACH = 4, APART = TILE / EACH;

__device__ void fill(float (&tile)[STEP][TILE + 1], const __nv_bfloat16* matrix, int first, int rows,
                     int k, int K) {
  for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
    const int row = first + i / STEP, column = k + i % STEP;
    const bool is_inside = row < rows && column < K;
    const __nv_bfloat16* element = matrix + static_cast<size_t>(row) * K + column;
    tile[i % STEP][i / STEP] = is_inside ? __bfloat162float(*element) : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_bf16_kernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int M,
                     int N, int K) {
  __shared__ float rows[STEP][TILE + 1], columns[STEP][TILE + 1];
  const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  const int row = threadIdx.x / APART, column = threadIdx.x % APART;
  float sums[EACH][EACH] = {};
  for (int k = 0; k < K; k += STEP) {
    fill(rows, x, first_row, M, k, K);
    fill(columns, weight, first_column, N, k, K);
    __syncthreads();
    for (int step = 0; step < STEP; ++step) {
      float a[EACH], b[EACH];
      for (int i = 0; i < EACH; ++i) {
        a[i] = rows[step][row + APART * i];
        b[i] = columns[step][column + APART * i];
      }
      for (int i = 0; i < EACH; ++i) {
        for (int j = 0; j < EACH; ++j) {
          sums[i][j] += a[i] * b[j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < EACH; ++i) {
    for (int j = 0; j < EACH; ++j) {
      const int r = first_row + row + APART * i, c = first_column + column + APART * j;
      if (r < M && c < N) {
        out[static_cast<size_t>(r) * N + c] = __float2bfloat16(sums[i][j]);
      }
    }
  }
}
