/* kopt: 1
family: other
note: "a thread a row"
launch:
  - kernel: scan
    grid: ceil_div(R, 32)
    block: 32
    args: [x, out, R, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// The simplest right kernel.

extern "C" __global__ void scan(const int* x, int* out, int R, int C) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= R) return;
  int sum = 0;
  for (int i = 0; i < C; ++i) {
    sum += x[static_cast<size_t>(row) * C + i];
    out[static_cast<size_t>(row) * C + i] = sum;
  }
}
