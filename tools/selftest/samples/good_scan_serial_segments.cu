/* kopt: 1
family: coarsening
note: "each thread sums a run of columns, warps scan the sums, then the runs are written"
where: "true"
launch:
  - kernel: scan_serial_segments
    grid: R
    block: 256
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Mapping: block b owns row b; thread t eight columns of each 2,048.

template <int kItems>
struct Segment {
  int value[kItems];
  __device__ int sum() const {
    int total = 0;
    for (int v : value) total += v;
    return total;
  }
};

extern "C" __global__ void scan_serial_segments(const int* x, int* out, long long C) {
  __shared__ int warps[8];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int carry = 0;
  for (long long first = 0; first < C; first += 8 * 256) {
    Segment<8> mine;
    for (int i = 0; i < 8; ++i) {
      const long long c = first + threadIdx.x * 8 + i;
      mine.value[i] = c < C ? __ldg(x + blockIdx.x * C + c) : 0;
    }
    const int own = mine.sum();
    int scanned = own;
    for (int d = 1; d < 32; d <<= 1) {
      const int other = __shfl_up_sync(0xffffffffu, scanned, d);
      if (lane >= d) scanned += other;
    }
    if (lane == 31) warps[warp] = scanned;
    __syncthreads();
    int before = carry + scanned - own, total = 0;
    for (int w = 0; w < 8; ++w) {
      if (w < warp) before += warps[w];
      total += warps[w];
    }
    for (int i = 0; i < 8; ++i) {
      const long long c = first + threadIdx.x * 8 + i;
      before += mine.value[i];
      if (c < C) out[blockIdx.x * C + c] = before;
    }
    carry += total;
    __syncthreads();
  }
}
