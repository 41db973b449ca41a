/* kopt: 1
family: other
note: "a reduction that takes its operation as a lambda"
launch:
  - kernel: extremes
    grid: R
    block: 64
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// Templates and a lambda that captures nothing.

struct Best {
  float value;
  int place;
};

template <class Operation>
__device__ Best reduce_warp(Best mine, Operation better) {
  for (int step = 16; step > 0; step /= 2) {
    const Best other = {__shfl_xor_sync(0xffffffffu, mine.value, step),
                        __shfl_xor_sync(0xffffffffu, mine.place, step)};
    if (better(other, mine)) mine = other;
  }
  return mine;
}

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ float values[2];
  __shared__ int places[2];
  const auto better = [](const Best& a, const Best& b) {
    return a.value > b.value || (a.value == b.value && a.place < b.place);
  };
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  Best mine = {-INFINITY, C};
  for (int i = threadIdx.x; i < C; i += 64) {
    const Best one = {row[i], i};
    if (better(one, mine)) mine = one;
  }
  mine = reduce_warp(mine, better);
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = mine.value;
    places[threadIdx.x / 32] = mine.place;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const Best first = {values[0], places[0]}, second = {values[1], places[1]};
  const Best best = better(second, first) ? second : first;
  largest[blockIdx.x] = best.value;
  place[blockIdx.x] = best.place;
}
