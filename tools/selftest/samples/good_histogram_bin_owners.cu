/* kopt: 1
family: other
note: "each thread owns a bin and reads the whole row"
launch:
  - kernel: histogram
    grid: R
    block: 64
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// The row goes through shared memory in pieces; no atomics.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ int piece[64];
  int count = 0;
  for (int begin = 0; begin < C; begin += 64) {
    const int i = begin + threadIdx.x, length = min(64, C - begin);
    if (i < C) piece[threadIdx.x] = x[static_cast<size_t>(blockIdx.x) * C + i];
    __syncthreads();
    for (int j = 0; j < length; ++j) count += piece[j] == threadIdx.x;
    __syncthreads();
  }
  counts[blockIdx.x * 64 + threadIdx.x] = count;
}
