/* kopt: 1
family: other
note: "the value by shuffles, its place by a ballot"
launch:
  - kernel: extremes
    grid: R
    block: 32
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// The first round in which a lane has the value ends the search.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < C; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int begin = 0; begin < C; begin += 32) {
    const int i = begin + threadIdx.x;
    const unsigned have = __ballot_sync(0xffffffffu, i < C && row[i] == most);
    if (have == 0) continue;
    if (threadIdx.x == 0) {
      largest[blockIdx.x] = row[begin + __ffs(have) - 1];
      place[blockIdx.x] = begin + __ffs(have) - 1;
    }
    break;
  }
}
