/* kopt: 1
family: algebra
note: "exp2 of a product: log2(e) folded into the scale, nothing kept between the passes"
where: "true"
launch:
  - kernel: softmax_recomputed
    grid: 2
    block: 64
    args: [x, out, R, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Mapping: warps stride over the rows.

#include <cstdint>

constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ float reduced(float v, float (*combine)(float, float)) {
  for (int d = 16; d; d >>= 1) v = combine(v, __shfl_xor_sync(0xffffffff, v, d));
  return v;
}

extern "C" __global__ void softmax_recomputed(const float* x, float* out, uint32_t R, uint32_t C) {
  const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  const uint32_t lane = threadIdx.x % warpSize;
  for (uint32_t row = warp; row < R; row += gridDim.x * blockDim.x / warpSize) {
    const float* from = x + uint64_t(row) * C;
    float most = from[0];
    for (uint32_t c = lane; c < C; c += warpSize) most = fmaxf(most, from[c]);
    most = reduced(most, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (uint32_t c = lane; c < C; c += warpSize) sum += exp2f((from[c] - most) * kLog2e);
    sum = reduced(sum, [](float a, float b) { return a + b; });
    const float inverse = __frcp_rn(sum);
    for (uint32_t c = lane; c < C; c += warpSize) {
      out[uint64_t(row) * C + c] = exp2f((from[c] - most) * kLog2e) * inverse;
    }
  }
}
