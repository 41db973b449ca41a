/* kopt: 1
family: other
note: "eight columns of a row a thread"
launch:
  - kernel: transpose
    grid: ceil_div(N, 8), ceil_div(M, 32), B
    block: 32
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// Neighboring lanes store neighboring elements of each column.

extern "C" __global__ void transpose(const float* x, float* out, int M, int N) {
  const size_t matrix = static_cast<size_t>(blockIdx.z) * M * N;
  const int row = blockIdx.y * 32 + threadIdx.x, first = blockIdx.x * 8;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int column = first + k;
    const float value =
        row < M && column < N ? x[matrix + static_cast<size_t>(row) * N + column] : 0.0f;
    if (row < M && column < N) out[matrix + static_cast<size_t>(column) * M + row] = value;
  }
}
