/* kopt: 1
family: other
note: "a warp a row, two warps a block"
launch:
  - kernel: extremes
    grid: ceil_div(R, 2)
    block: 64
    args: [x, largest, place, R, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// The last block may have a warp without a row.

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int R, int C) {
  const int row = blockIdx.x * 2 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= R) return;
  const float* from = x + static_cast<size_t>(row) * C;
  float value = -INFINITY;
  int at = C;
  for (int i = lane; i < C; i += 32)
    if (from[i] > value) {
      value = from[i];
      at = i;
    }
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_down_sync(0xffffffffu, value, step);
    const int other_at = __shfl_down_sync(0xffffffffu, at, step);
    const bool better = other > value || (other == value && other_at < at);
    value = better ? other : value;
    at = better ? other_at : at;
  }
  if (lane == 0) {
    largest[row] = value;
    place[row] = at;
  }
}
