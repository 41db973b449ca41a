/* kopt: 1
family: other
note: "counts by ballots on the bits of the values"
launch:
  - kernel: histogram
    grid: R
    block: 32
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// Each lane counts two values: those whose six bits agree with its own number.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  const int lane = threadIdx.x;
  int low = 0, high = 0;
  for (int begin = 0; begin < C; begin += 32) {
    const int i = begin + lane;
    const bool inside = i < C;
    const int value = inside ? x[static_cast<size_t>(blockIdx.x) * C + i] : 0;
    unsigned mine = __ballot_sync(0xffffffffu, inside);
    for (int bit = 0; bit < 5; ++bit) {
      const unsigned set = __ballot_sync(0xffffffffu, (value >> bit & 1) != 0);
      mine &= (lane >> bit & 1) != 0 ? set : ~set;
    }
    const unsigned upper = __ballot_sync(0xffffffffu, value >= 32);
    low += __popc(mine & ~upper);
    high += __popc(mine & upper);
  }
  counts[blockIdx.x * 64 + lane] = low;
  counts[blockIdx.x * 64 + 32 + lane] = high;
}
