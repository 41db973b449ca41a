/* kopt: 1
family: other
note: "tiles of 16 by 16, a thread an element"
launch:
  - kernel: transpose
    grid: ceil_div(N, 16), ceil_div(M, 16), B
    block: 16, 16
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// 256 threads, one barrier.

constexpr int kTile = 16;

extern "C" __global__ void transpose(const float* x, float* out, int M, int N) {
  __shared__ float tile[kTile][kTile + 1];
  const size_t matrix = static_cast<size_t>(blockIdx.z) * M * N;
  int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  if (row < M && column < N)
    tile[threadIdx.y][threadIdx.x] = x[matrix + static_cast<size_t>(row) * N + column];
  __syncthreads();
  row = blockIdx.x * kTile + threadIdx.y;
  column = blockIdx.y * kTile + threadIdx.x;
  if (row < N && column < M)
    out[matrix + static_cast<size_t>(row) * M + column] = tile[threadIdx.x][threadIdx.y];
}
