/* kopt: 1
family: other
note: "two counts of 16 bits in a word"
where: "C < 65536"
launch:
  - kernel: histogram
    grid: R
    block: 32
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// Rows of fewer than 65,536 values: no count runs over.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ unsigned pairs[32];
  pairs[threadIdx.x] = 0;
  __syncwarp();
  for (int i = threadIdx.x; i < C; i += 32) {
    const int value = x[static_cast<size_t>(blockIdx.x) * C + i];
    atomicAdd(&pairs[value / 2], value % 2 == 0 ? 1u : 1u << 16);
  }
  __syncwarp();
  const unsigned both = pairs[threadIdx.x];
  reinterpret_cast<int2*>(counts)[blockIdx.x * 32 + threadIdx.x] =
      make_int2(both & 0xffffu, both >> 16);
}
