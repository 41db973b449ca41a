/* kopt: 1
family: reduction
note: "value and place travel together through shuffles; ties go to the earlier place"
where: "true"
launch:
  - kernel: extremes_struct_shuffles
    grid: ceil_div(R, 4)
    block: 128
    args: [x, largest, place, R, C]
*/
// sample: kernel=row_extremes_r8xc700 status=passed level=full
// Mapping: warp w of block x owns row 4 x + w.

#include <cmath>

struct Best {
  float value;
  int place;
  __device__ void take(float other, int at) {
    if (other > value || (other == value && at < place)) {
      value = other;
      place = at;
    }
  }
};

extern "C" __global__ void extremes_struct_shuffles(const float* x, float* largest, int* place, int R, int C) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= R) return;
  Best best{-INFINITY, 0x7fffffff};
  for (int c = lane; c < C; c += 32) best.take(x[size_t(row) * C + c], c);
  for (int d = 16; d > 0; d /= 2) {
    const float value = __shfl_down_sync(0xffffffffu, best.value, d);
    const int at = __shfl_down_sync(0xffffffffu, best.place, d);
    best.take(value, at);
  }
  if (lane == 0) {
    largest[row] = best.value;
    place[row] = best.place;
  }
}
