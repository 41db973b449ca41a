/* kopt: 1
family: other
note: "the tile comes by asynchronous copies"
launch:
  - kernel: transpose
    grid: ceil_div(N, 32), ceil_div(M, 32), B
    block: 32, 4
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// __pipeline_memcpy_async, four bytes each, awaited before the barrier.

#include <cuda_pipeline_primitives.h>

extern "C" __global__ void transpose(const float* x, float* out, int M, int N) {
  __shared__ float tile[32][33];
  const size_t matrix = static_cast<size_t>(blockIdx.z) * M * N;
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32;
  for (int y = threadIdx.y; y < 32; y += 4)
    if (row + y < M && column < N)
      __pipeline_memcpy_async(&tile[y][threadIdx.x],
                              &x[matrix + static_cast<size_t>(row + y) * N + column], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += 4) {
    const int to_row = blockIdx.x * 32 + y, to_column = row + threadIdx.x;
    if (to_row < N && to_column < M)
      out[matrix + static_cast<size_t>(to_row) * M + to_column] = tile[threadIdx.x][y];
  }
}
