/* kopt: 1
family: other
note: "two rows a warp, sixteen lanes each"
launch:
  - kernel: softmax
    grid: ceil_div(R, 2)
    block: 32
    args: [x, out, R, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Shuffles of width 16; lanes without a row stay for the shuffles.

extern "C" __global__ void softmax(const float* x, float* out, int R, int C) {
  const int lane = threadIdx.x % 16, row = blockIdx.x * 2 + threadIdx.x / 16;
  const bool inside = row < R;
  const float* from = x + static_cast<size_t>(inside ? row : 0) * C;
  float most = -INFINITY, sum = 0.0f;
  for (int i = lane; i < C; i += 16) most = fmaxf(most, from[i]);
  for (int step = 8; step > 0; step /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step, 16));
  for (int i = lane; i < C; i += 16) sum += __expf(from[i] - most);
  for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step, 16);
  if (!inside) return;
  for (int i = lane; i < C; i += 16)
    out[static_cast<size_t>(row) * C + i] = __expf(from[i] - most) / sum;
}
