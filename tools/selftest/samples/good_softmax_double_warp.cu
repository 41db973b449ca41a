/* kopt: 1
family: other
note: "a warp a row, float64 through shuffles"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_fp64_r4xc200 status=passed level=full
// Eight bytes a shuffle; a product with the inverse of the sum.

extern "C" __global__ void softmax(const double* x, double* out, int C) {
  const double* row = x + static_cast<size_t>(blockIdx.x) * C;
  double most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += 32) most = fmax(most, row[i]);
  for (int step = 16; step > 0; step /= 2)
    most = fmax(most, __shfl_xor_sync(0xffffffffu, most, step));
  for (int i = threadIdx.x; i < C; i += 32) sum += exp2((row[i] - most) * 1.4426950408889634074);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const double inverse = 1 / sum;
  for (int i = threadIdx.x; i < C; i += 32)
    out[static_cast<size_t>(blockIdx.x) * C + i] =
        exp2((row[i] - most) * 1.4426950408889634074) * inverse;
}
