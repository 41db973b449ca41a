/* kopt: 1
family: other
note: "a maximum that is checked and stored without atomics"
launch:
  - kernel: extremes
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=data_race level=quick
// Between the check and the store another thread stores a larger one.

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ float most;
  __shared__ int first;
  if (threadIdx.x == 0) {
    most = -INFINITY;
    first = C;
  }
  __syncthreads();
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 128)  // <- here
    if (most < row[i]) most = row[i];         // <- here
  __syncthreads();
  for (int i = threadIdx.x; i < C; i += 128)
    if (row[i] == most) atomicMin(&first, i);
  __syncthreads();
  if (threadIdx.x == 0) {
    place[blockIdx.x] = first;
    largest[blockIdx.x] = most;
  }
}
