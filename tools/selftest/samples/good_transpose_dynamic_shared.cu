/* kopt: 1
family: other
note: "a band of rows in dynamic shared memory"
launch:
  - kernel: transpose
    grid: ceil_div(M, 16), B
    block: 64
    smem: 4 * 17 * N
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// 16 rows at once, each column written as 16 neighbors.

extern "C" __global__ void transpose(const float* x, float* out, int M, int N) {
  extern __shared__ float band[];  // N columns of 17
  const size_t matrix = static_cast<size_t>(blockIdx.y) * M * N;
  const int first = blockIdx.x * 16, rows = min(16, M - first);
  for (int i = threadIdx.x; i < rows * N; i += 64)
    band[(i % N) * 17 + i / N] = x[matrix + static_cast<size_t>(first) * N + i];
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * N; i += 64) {
    const int row = i % 16, column = i / 16;
    if (row < rows)
      out[matrix + static_cast<size_t>(column) * M + first + row] = band[column * 17 + row];
  }
}
