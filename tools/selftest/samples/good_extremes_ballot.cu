/* kopt: 1
family: divergence
note: "the largest value by integer reduction, its first place by a ballot"
where: "true"
launch:
  - kernel: extremes_ballot
    grid: R
    block: 32
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// Mapping: the warp of block b owns row b.

#include <cstdint>

// Floats in the order of unsigned integers.
__device__ __forceinline__ uint32_t ordered(float v) {
  const uint32_t bits = __float_as_uint(v);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void extremes_ballot(const float* x, float* largest, int* place, size_t C) {
  const float* row = x + blockIdx.x * C;
  uint32_t most = 0;
  for (size_t c = threadIdx.x; c < C; c += 32) most = max(most, ordered(row[c] + 0.0f));
  most = __reduce_max_sync(0xffffffffu, most);
  for (size_t first = 0; first < C; first += 32) {
    const size_t c = first + threadIdx.x;
    const unsigned has = __ballot_sync(0xffffffffu, c < C && ordered(row[c] + 0.0f) == most);
    if (has == 0) continue;
    if (threadIdx.x == 0) {
      const int at = static_cast<int>(first) + __ffs(has) - 1;
      place[blockIdx.x] = at;
      largest[blockIdx.x] = row[at];
    }
    break;
  }
}
