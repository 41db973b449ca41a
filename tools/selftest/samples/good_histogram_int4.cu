/* kopt: 1
family: other
note: "four values a load, the rest one by one"
launch:
  - kernel: histogram
    grid: R
    block: 64
    args: [x, counts, C]
*/
// sample: kernel=histogram_rows_r4xc1000 status=passed level=full
// A row begins at a multiple of four elements only where C is one.

extern "C" __global__ void histogram(const int* x, int* counts, int C) {
  __shared__ int bins[64];
  bins[threadIdx.x] = 0;
  __syncthreads();
  const int* row = x + static_cast<size_t>(blockIdx.x) * C;
  const int vectors = C % 4 == 0 ? C / 4 : 0;
  for (int i = threadIdx.x; i < vectors; i += 64) {
    const int4 v = reinterpret_cast<const int4*>(row)[i];
    atomicAdd(&bins[v.x], 1);
    atomicAdd(&bins[v.y], 1);
    atomicAdd(&bins[v.z], 1);
    atomicAdd(&bins[v.w], 1);
  }
  for (int i = 4 * vectors + threadIdx.x; i < C; i += 64) atomicAdd(&bins[row[i]], 1);
  __syncthreads();
  counts[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
}
