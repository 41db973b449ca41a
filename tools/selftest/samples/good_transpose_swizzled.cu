/* kopt: 1
family: other
note: "a tile of 32 columns, swizzled"
launch:
  - kernel: transpose
    grid: ceil_div(N, 32), ceil_div(M, 32), B
    block: 32, 8
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// The column is exchanged with the row's bits by exclusive or: no padding, no bank conflicts.

extern "C" __global__ void transpose(const float* x, float* out, int M, int N) {
  __shared__ float tile[32][32];
  const size_t matrix = static_cast<size_t>(blockIdx.z) * M * N;
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32;
#pragma unroll
  for (int y = threadIdx.y; y < 32; y += 8)
    if (row + y < M && column < N)
      tile[y][threadIdx.x ^ y] = x[matrix + static_cast<size_t>(row + y) * N + column];
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.y; y < 32; y += 8) {
    const int to_row = blockIdx.x * 32 + y, to_column = row + threadIdx.x;
    if (to_row < N && to_column < M)
      out[matrix + static_cast<size_t>(to_row) * M + to_column] =
          tile[threadIdx.x][y ^ threadIdx.x];
  }
}
