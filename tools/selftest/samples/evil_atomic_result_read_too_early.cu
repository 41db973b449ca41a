/* kopt: 1
family: other
note: "no barrier before the maximum is read"
launch:
  - kernel: extremes
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=data_race level=quick
// The load after the atomics is checked by none: it may find any of their results.

__device__ unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ unsigned most;
  __shared__ int first;
  if (threadIdx.x == 0) {
    most = 0;
    first = C;
  }
  __syncthreads();
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 128) {
    const unsigned key = ordered(row[i]);
    if (most < key) atomicMax(&most, key);  // <- here
  }
  for (int i = threadIdx.x; i < C; i += 128)
    if (ordered(row[i]) == most) atomicMin(&first, i);  // <- here
  __syncthreads();
  if (threadIdx.x == 0) {
    place[blockIdx.x] = first;
    largest[blockIdx.x] = row[first];
  }
}
