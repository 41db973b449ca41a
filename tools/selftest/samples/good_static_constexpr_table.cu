/* kopt: 1
family: other
note: "a static constexpr table inside a function"
launch:
  - kernel: histogram
    grid: R
    block: 128
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// Which of four copies of the counts a thread uses is read from a table.

__device__ constexpr int kBins = 64;

__device__ int copy_of(int lane) {
  static constexpr int table[8] = {0, 1, 2, 3, 3, 2, 1, 0};
  return table[lane & 7];
}

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ int bins[4][kBins];
  for (int i = threadIdx.x; i < 4 * kBins; i += 128) bins[i / kBins][i % kBins] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < C; i += 128)
    atomicAdd(&bins[copy_of(i % 32)][x[static_cast<size_t>(blockIdx.x) * C + i]], 1);
  __syncthreads();
  for (int bin = threadIdx.x; bin < kBins; bin += 128)
    counts[blockIdx.x * kBins + bin] = bins[0][bin] + bins[1][bin] + bins[2][bin] + bins[3][bin];
}
