/* kopt: 1
family: other
note: "counts in shared memory"
launch:
  - kernel: histogram
    grid: R
    block: 128
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// Integers: each count is right or wrong.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ int bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < C; i += 128)
    atomicAdd(&bins[x[static_cast<size_t>(blockIdx.x) * C + i]], 1);
  __syncthreads();
  if (threadIdx.x < 64) counts[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
}
