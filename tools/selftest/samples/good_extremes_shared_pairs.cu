/* kopt: 1
family: reduction
note: "std::pair in shared memory, reduced by a comparator object"
where: "true"
launch:
  - kernel: extremes_shared_pairs
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// Mapping: block b owns row b.

#include <cmath>
#include <utility>

using Pair = std::pair<float, int>;

struct Later {
  __device__ bool operator()(const Pair& a, const Pair& b) const {
    return a.first < b.first || (a.first == b.first && a.second > b.second);
  }
};

extern "C" __global__ void extremes_shared_pairs(const float* x, float* largest, int* place, int C) {
  __shared__ float values[128];
  __shared__ int places[128];
  Pair best(-INFINITY, 0x7fffffff);
  const Later is_worse;
  for (int c = threadIdx.x; c < C; c += 128) {
    const Pair here(x[size_t(blockIdx.x) * C + c], c);
    if (is_worse(best, here)) best = here;
  }
  values[threadIdx.x] = best.first;
  places[threadIdx.x] = best.second;
  for (int n = 64; n > 0; n /= 2) {
    __syncthreads();
    if (threadIdx.x < n) {
      const Pair other(values[threadIdx.x + n], places[threadIdx.x + n]);
      if (is_worse(best, other)) best = other;
      values[threadIdx.x] = best.first;
      places[threadIdx.x] = best.second;
    }
  }
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = best.first;
    place[blockIdx.x] = best.second;
  }
}
