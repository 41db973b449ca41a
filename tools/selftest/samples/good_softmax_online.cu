/* kopt: 1
family: algebra
note: "one pass: running maximum and sum, merged over the lanes of a warp"
where: "true"
launch:
  - kernel: softmax_online
    grid: ceil_div(R, 4)
    block: 32, 4
    args: [x, out, R, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Mapping: warp y of block x owns row 4 x + y.

#include <cfloat>

struct Running {
  float most, sum;
  __device__ __forceinline__ Running merged(const Running& other) const {
    const float larger = fmaxf(most, other.most);
    return {larger, sum * __expf(most - larger) + other.sum * __expf(other.most - larger)};
  }
};

extern "C" __global__ void softmax_online(const float* x, float* out, int R, int C) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  if (row >= R) return;
  Running all{-FLT_MAX, 0.0f};
  for (int c = lane; c < C; c += 32) all = all.merged({x[size_t(row) * C + c], 1.0f});
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    all = all.merged({__shfl_xor_sync(0xffffffffu, all.most, d), __shfl_xor_sync(0xffffffffu, all.sum, d)});
  }
  const float scale = 1.0f / all.sum;
  for (int c = lane; c < C; c += 32) {
    out[size_t(row) * C + c] = expf(x[size_t(row) * C + c] - all.most) * scale;
  }
}
