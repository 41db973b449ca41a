/* kopt: 1
family: other
note: "one atomic for all lanes that agree"
launch:
  - kernel: histogram
    grid: R
    block: 64
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// __match_any_sync: the first lane of each value adds for all of them.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ int bins[64];
  bins[threadIdx.x] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  for (int begin = 0; begin < C; begin += 64) {
    const int i = begin + threadIdx.x;
    const int value = i < C ? x[static_cast<size_t>(blockIdx.x) * C + i] : -1;
    const unsigned alike = __match_any_sync(0xffffffffu, value);
    if (value >= 0 && __ffs(alike) - 1 == lane) atomicAdd(&bins[value], __popc(alike));
  }
  __syncthreads();
  counts[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
}
