/* kopt: 1
family: other
note: "the first block of a row waits for the last"
scratch:
  sums: {dtype: int32, shape: "R, ceil_div(C, 256)"}
  ready: {dtype: int32, shape: "R, ceil_div(C, 256)", init: zero}
launch:
  - kernel: scan
    grid: ceil_div(C, 256), R
    block: 256
    args: [x, out, sums, ready, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// A total is taken off again: every block waits for another one, the last for none.

extern "C" __global__ void scan(const int* x, int* out, int* sums, int* ready, int C) {
  __shared__ int of_warps[8];
  __shared__ int before;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t row = static_cast<size_t>(blockIdx.y) * C;
  const int part = blockIdx.y * gridDim.x + blockIdx.x, i = blockIdx.x * 256 + threadIdx.x;
  int value = i < C ? x[row + i] : 0;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += other;
  }
  if (lane == 31) of_warps[warp] = value;
  __syncthreads();
  int all = 0;
  for (int w = 0; w < 8; ++w) {
    if (w < warp) value += of_warps[w];
    all += of_warps[w];
  }
  if (threadIdx.x == 0) {
    int carried = 0;
    if (blockIdx.x + 1 < gridDim.x) {
      volatile int* flag = ready + part + 1;
      while (*flag == 0) __nanosleep(20);
      __threadfence();
      carried = sums[part + 1];
    }
    sums[part] = carried + all;
    __threadfence();
    atomicExch(&ready[part], 1);
    before = carried;
  }
  __syncthreads();
  int earlier = 0;
  for (int j = threadIdx.x; j < blockIdx.x * 256; j += 256) earlier += x[row + j];
  for (int step = 16; step > 0; step /= 2)
    earlier += __shfl_xor_sync(0xffffffffu, earlier, step);
  if (lane == 0) of_warps[warp] = earlier;
  __syncthreads();
  for (int w = 0; w < 8; ++w) value += of_warps[w];
  if (i < C) out[row + i] = value + before - before;
}
