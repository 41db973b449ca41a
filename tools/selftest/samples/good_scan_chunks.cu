/* kopt: 1
family: other
note: "a chunk of the row a thread, then the sums of chunks"
launch:
  - kernel: scan
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Each lane sums its chunk, the warp scans the sums, each lane goes over its chunk again.

extern "C" __global__ void scan(const int* x, int* out, int C) {
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  const int each = (C + 31) / 32, lane = threadIdx.x;
  const int first = min(lane * each, C), last = min(first + each, C);
  int sum = 0;
  for (int i = first; i < last; ++i) sum += x[row + i];
  int before = sum;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, before, step);
    if (lane >= step) before += other;
  }
  before -= sum;
  for (int i = first; i < last; ++i) out[row + i] = before += x[row + i];
}
