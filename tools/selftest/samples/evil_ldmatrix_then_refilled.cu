/* kopt: 1
family: tensor_cores
note: "no barrier between the last ldmatrix of a stage and its refill"
where: "M % 64 == 0 and N % 64 == 0 and K % 32 == 0"
launch:
  - kernel: gemm_mma
    grid: M // 64, N // 64
    block: 128
    args: [x, weight, out, N, K]
*/
// sample: kernel=gemm_bf16_small_m64xn128xk128 status=data_race level=quick says="may land at once"
// The next stage but one is copied over this one while other warps may still read it.

#include <cuda_bf16.h>

#include <cstdint>

constexpr int TILE = 64, STEP = 32, WIDTH = STEP + 8;

__device__ __forceinline__ void copy_16(const __nv_bfloat16* shared, const __nv_bfloat16* global) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"  // <- here
               ::"r"(to), "l"(global)
               : "memory");
}
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const __nv_bfloat16* row) {
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from));
}
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128)
    gemm_mma(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int N,
             int K) {
  __shared__ __align__(16) __nv_bfloat16 xs[2][TILE][WIDTH], ws[2][TILE][WIDTH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_row = warp / 2 * 32, first_column = warp % 2 * 32;
  const __nv_bfloat16* x_tile = x + static_cast<size_t>(blockIdx.x) * TILE * K;
  const __nv_bfloat16* w_tile = weight + static_cast<size_t>(blockIdx.y) * TILE * K;
  float sums[2][4][4] = {};

  const auto start_loads = [&](int step) {
    for (int i = threadIdx.x; i < TILE * STEP / 8; i += 128) {
      const int row = i / (STEP / 8), column = i % (STEP / 8) * 8;
      const size_t from = static_cast<size_t>(row) * K + step * STEP + column;
      copy_16(&xs[step % 2][row][column], x_tile + from);
      copy_16(&ws[step % 2][row][column], w_tile + from);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  const int steps = K / STEP;
  start_loads(0);
  start_loads(1);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();  // the stage is in
    for (int k = 0; k < STEP; k += 16) {
      uint32_t a[2][4], b[2][4];
      for (int i = 0; i < 2; ++i) {
        load_matrices(a[i], &xs[step % 2][first_row + i * 16 + lane % 16][k + lane / 16 * 8]);
        load_matrices(b[i], &ws[step % 2][first_column + i * 16 + lane / 16 * 8 + lane % 8]
                                [k + lane / 8 % 2 * 8]);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          multiply(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
    if (step + 2 < steps) start_loads(step + 2);
    else asm volatile("cp.async.commit_group;" ::: "memory");
  }

  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      const size_t row = blockIdx.x * TILE + first_row + i * 16 + lane / 4;
      const int column = blockIdx.y * TILE + first_column + j * 8 + lane % 4 * 2;
      auto* place = reinterpret_cast<__nv_bfloat162*>(out + row * N + column);
      place[0] = __floats2bfloat162_rn(sums[i][j][0], sums[i][j][1]);
      place[4 * N] = __floats2bfloat162_rn(sums[i][j][2], sums[i][j][3]);
    }
  }
}
