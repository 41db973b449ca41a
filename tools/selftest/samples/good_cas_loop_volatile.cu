/* kopt: 1
family: other
note: "a compare-and-swap loop that begins with a volatile read"
launch:
  - kernel: extremes
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// As in many reductions of floats.

__device__ float atomic_max(float* address, float value) {
  int* as_int = reinterpret_cast<int*>(address);
  int old = *reinterpret_cast<volatile int*>(address), assumed;
  do {
    assumed = old;
    old = atomicCAS(as_int, assumed,
                    __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ float most;
  __shared__ int first;
  if (threadIdx.x == 0) {
    most = -INFINITY;
    first = C;
  }
  __syncthreads();
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 128) atomic_max(&most, row[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < C; i += 128)
    if (row[i] == most) atomicMin(&first, i);
  __syncthreads();
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = most;
    place[blockIdx.x] = first;
  }
}
