/* kopt: 1
family: other
note: "a barrier that votes ends the search"
launch:
  - kernel: extremes
    grid: R
    block: 64
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// __syncthreads_or tells all threads whether one has found the place.

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
  __shared__ float partial[2];
  __shared__ int first;
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < C; i += 64) most = fmaxf(most, row[i]);
  most = warp_max(most);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = most;
  if (threadIdx.x == 0) first = C;
  __syncthreads();
  most = fmaxf(partial[0], partial[1]);
  for (int begin = 0; begin < C; begin += 64) {
    const int i = begin + threadIdx.x;
    const bool found = i < C && row[i] == most;
    if (found) atomicMin(&first, i);
    if (__syncthreads_or(found)) break;
  }
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = row[first];
    place[blockIdx.x] = first;
  }
}
