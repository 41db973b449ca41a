/* kopt: 1
family: bank_conflicts
note: "a tile whose columns are exchanged by xor instead of padding"
where: "true"
launch:
  - kernel: transpose_swizzled
    grid: ceil_div(N, 32), ceil_div(M, 32), B
    block: 32, 8
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// Mapping: block (x, y, z) owns a tile of 32 x 32 of matrix z.

constexpr int kTile = 32;

__device__ __forceinline__ int swizzled(int row, int column) { return row * kTile + (column ^ row); }

extern "C" __global__ void transpose_swizzled(const float* x, float* out, int M, int N) {
  __shared__ float tile[kTile * kTile];
  const size_t matrix = size_t(blockIdx.z) * M * N;
  const int column = blockIdx.x * kTile + threadIdx.x, row0 = blockIdx.y * kTile;
#pragma unroll
  for (int y = threadIdx.y; y < kTile; y += 8) {
    if (row0 + y < M && column < N) {
      tile[swizzled(y, threadIdx.x)] = x[matrix + size_t(row0 + y) * N + column];
    }
  }
  __syncthreads();
  const int to = row0 + threadIdx.x;
#pragma unroll
  for (int y = threadIdx.y; y < kTile; y += 8) {
    const int from = blockIdx.x * kTile + y;
    if (from < N && to < M) out[matrix + size_t(from) * M + to] = tile[swizzled(threadIdx.x, y)];
  }
}
