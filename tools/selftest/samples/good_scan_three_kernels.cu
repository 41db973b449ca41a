/* kopt: 1
family: other
note: "sums of parts, their scan, and the parts"
scratch:
  sums: {dtype: int32, shape: "R, ceil_div(C, 64)"}
launch:
  - kernel: parts
    grid: ceil_div(C, 64), R
    block: 32
    args: [x, sums, C]
  - kernel: offsets
    grid: R
    block: 1
    args: [sums, C]
  - kernel: finish
    grid: ceil_div(C, 64), R
    block: 32
    args: [x, sums, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Three launches, each reads what the one before wrote.

extern "C" __global__ void parts(const int* x, int* sums, int C) {
  const size_t row = static_cast<size_t>(blockIdx.y) * C;
  int sum = 0;
  for (int k = 0; k < 2; ++k) {
    const int i = blockIdx.x * 64 + k * 32 + threadIdx.x;
    sum += i < C ? x[row + i] : 0;
  }
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x == 0) sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

extern "C" __global__ void offsets(int* sums, int C) {
  const int count = (C + 63) / 64;
  int sum = 0;
  for (int part = 0; part < count; ++part) {
    const int own = sums[blockIdx.x * count + part];
    sums[blockIdx.x * count + part] = sum;
    sum += own;
  }
}

extern "C" __global__ void finish(const int* x, const int* sums, int* out, int C) {
  const size_t row = static_cast<size_t>(blockIdx.y) * C;
  int carried = sums[blockIdx.y * gridDim.x + blockIdx.x];
  for (int k = 0; k < 2; ++k) {
    const int i = blockIdx.x * 64 + k * 32 + threadIdx.x;
    int value = i < C ? x[row + i] : 0;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, value, step);
      if (threadIdx.x >= step) value += other;
    }
    if (i < C) out[row + i] = carried + value;
    carried += __shfl_sync(0xffffffffu, value, 31);
  }
}
