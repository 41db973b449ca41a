/* kopt: 1
family: other
note: "a tree of float64 in shared memory"
launch:
  - kernel: softmax
    grid: R
    block: 64
    args: [x, out, C]
*/
// sample: kernel=softmax_fp64_r4xc200 status=passed level=full
// Maximum, then sum, in the same array.

extern "C" __global__ void softmax(const double* x, double* out, int C) {
  __shared__ double tree[64];
  const int t = threadIdx.x;
  const double* row = x + static_cast<size_t>(blockIdx.x) * C;
  double mine = -INFINITY;
  for (int i = t; i < C; i += 64) mine = fmax(mine, row[i]);
  tree[t] = mine;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) tree[t] = fmax(tree[t], tree[t + half]);
    __syncthreads();
  }
  const double most = tree[0];
  __syncthreads();
  mine = 0;
  for (int i = t; i < C; i += 64) mine += exp(row[i] - most);
  tree[t] = mine;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) tree[t] += tree[t + half];
    __syncthreads();
  }
  for (int i = t; i < C; i += 64)
    out[static_cast<size_t>(blockIdx.x) * C + i] = exp(row[i] - most) / tree[0];
}
