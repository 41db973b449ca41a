/* kopt: 1
family: other
note: "maxima by integer warp reductions"
launch:
  - kernel: extremes
    grid: R
    block: 32
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// __reduce_max_sync and __reduce_min_sync on integers in the order of the floats.

#include <climits>

__device__ int in_order(float value) {
  const int bits = __float_as_int(value + 0.0f);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  int most = INT_MIN;
  for (int i = threadIdx.x; i < C; i += 32) most = max(most, in_order(row[i]));
  most = __reduce_max_sync(0xffffffffu, most);
  int first = C;
  for (int i = threadIdx.x; i < C; i += 32)
    if (in_order(row[i]) == most) first = min(first, i);
  first = __reduce_min_sync(0xffffffffu, first);
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = row[first];
    place[blockIdx.x] = first;
  }
}
