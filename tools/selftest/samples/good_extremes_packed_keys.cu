/* kopt: 1
family: other
note: "value and place in one 64-bit key"
launch:
  - kernel: extremes
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// A key that is larger for larger values, and for smaller places.

__device__ unsigned long long key_of(float value, int place) {
  unsigned bits = __float_as_uint(value + 0.0f);  // -0 is equal to 0
  bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(bits) << 32 | (0xffffffffu - place);
}

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ unsigned long long best;
  if (threadIdx.x == 0) best = 0;
  __syncthreads();
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  unsigned long long mine = 0;
  for (int i = threadIdx.x; i < C; i += 128) mine = max(mine, key_of(row[i], i));
  for (int step = 16; step > 0; step /= 2)
    mine = max(mine, __shfl_xor_sync(0xffffffffu, mine, step));
  if (threadIdx.x % 32 == 0) atomicMax(&best, mine);
  __syncthreads();
  if (threadIdx.x == 0) {
    const int at = static_cast<int>(0xffffffffu - static_cast<unsigned>(best));
    largest[blockIdx.x] = row[at];
    place[blockIdx.x] = at;
  }
}
