/* kopt: 1
family: other
note: "a histogram a warp"
launch:
  - kernel: histogram
    grid: R
    block: 128
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// Four histograms, summed behind a barrier.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ int bins[4][64];
  int* own = bins[threadIdx.x / 32];
  for (int bin = threadIdx.x % 32; bin < 64; bin += 32) own[bin] = 0;
  __syncwarp();
  for (int i = threadIdx.x; i < C; i += 128)
    atomicAdd(own + x[static_cast<size_t>(blockIdx.x) * C + i], 1);
  __syncthreads();
  if (threadIdx.x < 64) {
    int sum = 0;
#pragma unroll
    for (int warp = 0; warp < 4; ++warp) sum += bins[warp][threadIdx.x];
    counts[blockIdx.x * 64 + threadIdx.x] = sum;
  }
}
