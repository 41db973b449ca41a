/* kopt: 1
family: other
note: "a tree of indices in shared memory"
launch:
  - kernel: extremes
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// The place alone is kept; values are read again through it.

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ int at[128];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  int mine = min(static_cast<int>(threadIdx.x), C - 1);
  for (int i = mine + 128; i < C; i += 128)
    if (row[i] > row[mine]) mine = i;
  at[threadIdx.x] = mine;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const int a = at[threadIdx.x], b = at[threadIdx.x + half];
      if (row[b] > row[a] || (row[b] == row[a] && b < a)) at[threadIdx.x] = b;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = row[at[0]];
    place[blockIdx.x] = at[0];
  }
}
