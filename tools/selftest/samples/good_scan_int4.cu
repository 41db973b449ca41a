/* kopt: 1
family: other
note: "four elements a load"
where: "C % 4 == 0"
launch:
  - kernel: scan
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// Rows of a multiple of four: sums within a vector, then across the warp.

extern "C" __global__ void scan(const int* x, int* out, int C) {
  const int4* row = reinterpret_cast<const int4*>(x + static_cast<size_t>(blockIdx.x) * C);
  int4* to = reinterpret_cast<int4*>(out + static_cast<size_t>(blockIdx.x) * C);
  int carried = 0;
  for (int begin = 0; begin < C / 4; begin += 32) {
    const int i = begin + threadIdx.x;
    int4 v = i < C / 4 ? row[i] : make_int4(0, 0, 0, 0);
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    int before = v.w;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, before, step);
      if (threadIdx.x >= step) before += other;
    }
    const int all = __shfl_sync(0xffffffffu, before, 31);
    before += carried - v.w;
    if (i < C / 4) to[i] = make_int4(v.x + before, v.y + before, v.z + before, v.w + before);
    carried += all;
  }
}
