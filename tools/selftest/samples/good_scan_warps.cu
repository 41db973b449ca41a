/* kopt: 1
family: other
note: "a scan by shuffles, sums of warps in shared memory"
launch:
  - kernel: scan
    grid: R
    block: 256
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// 256 elements a round, the sum of earlier rounds carried on.

extern "C" __global__ void scan(const int* x, int* out, int C) {
  __shared__ int sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  int carried = 0;
  for (int begin = 0; begin < C; begin += 256) {
    const int i = begin + threadIdx.x;
    int value = i < C ? x[row + i] : 0;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, value, step);
      if (lane >= step) value += other;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    int before = carried, all = 0;
    for (int w = 0; w < 8; ++w) {
      if (w < warp) before += sums[w];
      all += sums[w];
    }
    if (i < C) out[row + i] = before + value;
    carried += all;
    __syncthreads();
  }
}
