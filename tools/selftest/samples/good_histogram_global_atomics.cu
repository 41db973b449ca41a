/* kopt: 1
family: other
note: "atomics in zeroed scratch, then a copy"
scratch:
  sums: {dtype: int32, shape: "R, 64", init: zero}
launch:
  - kernel: count
    grid: ceil_div(C, 256), R
    block: 256
    args: [x, sums, C]
  - kernel: copy
    grid: R
    block: 64
    args: [sums, counts]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// The second launch comes after all atomics of the first.

extern "C" __global__ void count(const int* x, int* sums, int C) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < C) atomicAdd(sums + blockIdx.y * 64 + x[static_cast<size_t>(blockIdx.y) * C + i], 1);
}

extern "C" __global__ void copy(const int* sums, int* counts) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  counts[i] = sums[i];
}
