/* kopt: 1
family: tensor_cores
note: "tiles of 64x64 by nvcuda::wmma, sums through shared memory"
where: "M % 64 == 0 and N % 64 == 0 and K % 32 == 0"
launch:
  - kernel: gemm_wmma
    grid: M // 64, N // 64
    block: 128
    args: [x, weight, out, N, K]
*/
// sample: kernel=gemm_bf16_small_m64xn128xk128 status=passed level=full
// Mapping: a block owns a tile of 64x64, each of its 4 warps 16 rows of that.

#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 64, STEP = 32, WIDTH = STEP + 8;

extern "C" __global__ void __launch_bounds__(128)
    gemm_wmma(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int N,
              int K) {
  __shared__ __align__(32) __nv_bfloat16 xs[TILE][WIDTH], ws[TILE][WIDTH];
  __shared__ __align__(32) float results[TILE][TILE];
  const int warp = threadIdx.x / 32;
  const __nv_bfloat16* x_tile = x + static_cast<size_t>(blockIdx.x) * TILE * K;
  const __nv_bfloat16* w_tile = weight + static_cast<size_t>(blockIdx.y) * TILE * K;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4];
  for (auto& one : sums) wmma::fill_fragment(one, 0.0f);
  for (int k = 0; k < K; k += STEP) {
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * STEP / 8; i += 128) {
      const int row = i / (STEP / 8), column = i % (STEP / 8) * 8;
      const size_t from = static_cast<size_t>(row) * K + k + column;
      *reinterpret_cast<uint4*>(&xs[row][column]) = *reinterpret_cast<const uint4*>(x_tile + from);
      *reinterpret_cast<uint4*>(&ws[row][column]) = *reinterpret_cast<const uint4*>(w_tile + from);
    }
    __syncthreads();
    for (int step = 0; step < STEP; step += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
      wmma::load_matrix_sync(a, &xs[warp * 16][step], WIDTH);
      for (int j = 0; j < 4; ++j) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
        wmma::load_matrix_sync(b, &ws[j * 16][step], WIDTH);
        wmma::mma_sync(sums[j], a, b, sums[j]);
      }
    }
  }

  for (int j = 0; j < 4; ++j)
    wmma::store_matrix_sync(&results[warp * 16][j * 16], sums[j], TILE, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
    const size_t row = blockIdx.x * TILE + i / TILE;
    out[row * N + blockIdx.y * TILE + i % TILE] = __float2bfloat16(results[i / TILE][i % TILE]);
  }
}
