/* kopt: 1
family: other
note: "a histogram of bytes a thread, summed"
launch:
  - kernel: histogram
    grid: R
    block: 32
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// Each thread counts in bytes of its own, at most 255 a round.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ unsigned char mine[64][32];
  int total[2] = {0, 0};
  const int lane = threadIdx.x;
  for (int begin = 0; begin < C; begin += 32 * 255) {
    for (int bin = 0; bin < 64; ++bin) mine[bin][lane] = 0;
    const int end = min(begin + 32 * 255, C);
    for (int i = begin + lane; i < end; i += 32)
      ++mine[x[static_cast<size_t>(blockIdx.x) * C + i]][lane];
    __syncwarp();
    for (int other = 0; other < 32; ++other) {
      total[0] += mine[lane][other];
      total[1] += mine[lane + 32][other];
    }
    __syncwarp();
  }
  counts[blockIdx.x * 64 + lane] = total[0];
  counts[blockIdx.x * 64 + lane + 32] = total[1];
}
