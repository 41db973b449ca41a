/* kopt: 1
family: smem_tiling
note: "starting point: tiles of 64x64 through shared memory in fp32, 4x4 sums a thread, no tensor cores"
where: "true"
tune: {STEP: [32, 16]}
launch:
  - kernel: gemm_fp8_kernel
    grid: ceil_div(N, 64), ceil_div(M, 64)
    block: 256
    args: [x, x_scale, weight, weight_scale, out, M, N, K, MP]
*/
// Mapping: block (b, a) owns rows 64 a and on of out, columns 64 b and on; thread t the rows
// t / 16 + 16 i and the columns t % 16 + 16 j of its tile, i and j from 0 to 3.
// Shared memory holds STEP columns of k of both operands, as zeros where the operands end. Barriers
// stand before a tile is read and before it is filled again. Products of 128 columns of k are added
// first; their sum is scaled and added to the result's.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

constexpr int TILE = 64, THREADS = 256, EACH = 4, APART = TILE / EACH, SCALED = 128;

__device__ void fill(float (&tile)[STEP][TILE + 1], const __nv_fp8_e4m3* matrix, int first,
                     int rows, int k, int K) {
  for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
    const int row = first + i / STEP, column = k + i % STEP;
    const __nv_fp8_e4m3* element = matrix + static_cast<size_t>(row) * K + column;
    tile[i % STEP][i / STEP] = row < rows ? static_cast<float>(*element) : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_fp8_kernel(const __nv_fp8_e4m3* x, const float* x_scale, const __nv_fp8_e4m3* weight,
                    const float* weight_scale, __nv_bfloat16* out, int M, int N, int K, int MP) {
  __shared__ float rows[STEP][TILE + 1], columns[STEP][TILE + 1];
  const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  const int row = threadIdx.x / APART, column = threadIdx.x % APART;
  float sums[EACH][EACH] = {};
  for (int block = 0; block < K / SCALED; ++block) {
    float products[EACH][EACH] = {};
    for (int k = block * SCALED; k < (block + 1) * SCALED; k += STEP) {
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
            products[i][j] += a[i] * b[j];
          }
        }
      }
      __syncthreads();
    }
    // A tile of 64 columns lies in one block of weights.
    const float of_weight = weight_scale[first_column / SCALED * (K / SCALED) + block];
    for (int i = 0; i < EACH; ++i) {
      const int r = first_row + row + APART * i;
      const float scale = r < M ? x_scale[static_cast<size_t>(block) * MP + r] * of_weight : 0.0f;
      for (int j = 0; j < EACH; ++j) {
        sums[i][j] += products[i][j] * scale;
      }
    }
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
