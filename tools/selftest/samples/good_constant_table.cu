/* kopt: 1
family: other
note: "distances from a __constant__ table"
launch:
  - kernel: scan
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Five steps of a scan by shuffles.

__constant__ int kSteps[5] = {1, 2, 4, 8, 16};

extern "C" __global__ void scan(const int* x, int* out, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  int carried = 0;
  for (int begin = 0; begin < C; begin += 32) {
    const int i = begin + threadIdx.x;
    int value = i < C ? x[row + i] : 0;
    for (int n = 0; n < 5; ++n) {
      const int other = __shfl_up_sync(0xffffffffu, value, kSteps[n]);
      if (threadIdx.x >= kSteps[n]) value += other;
    }
    value += carried;
    if (i < C) out[row + i] = value;
    carried = __shfl_sync(0xffffffffu, value, 31);
  }
}
