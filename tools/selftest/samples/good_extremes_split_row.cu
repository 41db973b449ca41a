/* kopt: 1
family: other
note: "parts of a row by different blocks, joined by a second launch"
scratch:
  values: {dtype: float32, shape: "R, 4"}
  places: {dtype: int32, shape: "R, 4"}
launch:
  - kernel: parts
    grid: 4, R
    block: 32
    args: [x, values, places, C]
  - kernel: join
    grid: R
    block: 1
    args: [values, places, largest, place]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// Scratch holds four candidates a row.

extern "C" __global__ void parts(const float* x, float* values, int* places, int C) {
  const float* row = x + static_cast<size_t>(blockIdx.y) * C;
  const int each = (C + 3) / 4, last = min((static_cast<int>(blockIdx.x) + 1) * each, C);
  float value = -INFINITY;
  int at = C;
  for (int i = blockIdx.x * each + threadIdx.x; i < last; i += 32)
    if (row[i] > value) {
      value = row[i];
      at = i;
    }
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, step);
    const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
    if (other > value || (other == value && other_at < at)) {
      value = other;
      at = other_at;
    }
  }
  if (threadIdx.x == 0) {
    values[blockIdx.y * 4 + blockIdx.x] = value;
    places[blockIdx.y * 4 + blockIdx.x] = at;
  }
}

extern "C" __global__ void join(const float* values, const int* places, float* largest,
                                int* place) {
  int best = blockIdx.x * 4;
  for (int part = best + 1; part < blockIdx.x * 4 + 4; ++part)
    if (values[part] > values[best]) best = part;
  largest[blockIdx.x] = values[best];
  place[blockIdx.x] = places[best];
}
