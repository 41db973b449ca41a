/* kopt: 1
family: other
note: "Hillis and Steele's scan in two buffers"
launch:
  - kernel: scan
    grid: R
    block: 128
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Each step reads one buffer and writes the other.

extern "C" __global__ void scan(const int* x, int* out, int C) {
  __shared__ int buffers[2][128];
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  int carried = 0;
  for (int begin = 0; begin < C; begin += 128) {
    const int i = begin + threadIdx.x;
    int now = 0;
    buffers[0][threadIdx.x] = i < C ? x[row + i] : 0;
    __syncthreads();
    for (int step = 1; step < 128; step *= 2) {
      int value = buffers[now][threadIdx.x];
      if (threadIdx.x >= step) value += buffers[now][threadIdx.x - step];
      now ^= 1;
      buffers[now][threadIdx.x] = value;
      __syncthreads();
    }
    if (i < C) out[row + i] = carried + buffers[now][threadIdx.x];
    carried += buffers[now][127];
    __syncthreads();
  }
}
