/* kopt: 1
family: other
note: "32 lanes load, those of 4 warps count"
launch:
  - kernel: extremes
    grid: R
    block: 128
    args: [x, largest, place, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// Lanes beyond the last warp load what nothing has written, and take something else.

extern "C" __global__ void extremes(const float* x, float* largest, int* place, int C) {
  __shared__ float values[32];
  __shared__ int places[32];
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float value = -INFINITY;
  int at = C;
  for (int i = threadIdx.x; i < C; i += 128) {
    const float v = row[i];
    if (v > value) at = i;
    value = fmaxf(value, v);
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, step);
    const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
    if (other > value || (other == value && other_at < at)) at = other_at;
    value = fmaxf(value, other);
  }
  if (lane == 0) {
    values[warp] = value;
    places[warp] = at;
  }
  __syncthreads();
  if (warp != 0) return;
  const float loaded = values[lane];
  const int loaded_at = places[lane];
  value = lane < 4 ? loaded : -INFINITY;
  at = lane < 4 ? loaded_at : C;
  for (int step = 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, step);
    const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
    if (other > value || (other == value && other_at < at)) at = other_at;
    value = fmaxf(value, other);
  }
  if (lane == 0) {
    largest[blockIdx.x] = value;
    place[blockIdx.x] = at;
  }
}
