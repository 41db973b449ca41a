/* kopt: 1
family: other
note: "Blelloch's scan, up and down a tree"
launch:
  - kernel: scan
    grid: R
    block: 64
    args: [x, out, C]
*/
// sample: kernel=scan_rows_r4xc1024 status=passed level=full
// 128 elements a round, an exclusive scan made inclusive by its own element.

extern "C" __global__ void scan(const int* x, int* out, int C) {
  __shared__ int tree[128];
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  const int t = threadIdx.x;
  int carried = 0;
  for (int begin = 0; begin < C; begin += 128) {
    int own[2];
    for (int k = 0; k < 2; ++k) {
      const int i = begin + 2 * t + k;
      own[k] = i < C ? x[row + i] : 0;
      tree[2 * t + k] = own[k];
    }
    int stride = 1;
    for (int active = 64; active > 0; active >>= 1, stride <<= 1) {
      __syncthreads();
      if (t < active) tree[stride * (2 * t + 2) - 1] += tree[stride * (2 * t + 1) - 1];
    }
    __syncthreads();
    const int all = tree[127];
    __syncthreads();
    if (t == 0) tree[127] = 0;
    for (int active = 1; active < 128; active <<= 1) {
      stride >>= 1;
      __syncthreads();
      if (t < active) {
        const int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
        const int kept = tree[left];
        tree[left] = tree[right];
        tree[right] += kept;
      }
    }
    __syncthreads();
    for (int k = 0; k < 2; ++k)
      if (begin + 2 * t + k < C) out[row + begin + 2 * t + k] = carried + tree[2 * t + k] + own[k];
    carried += all;
    __syncthreads();
  }
}
