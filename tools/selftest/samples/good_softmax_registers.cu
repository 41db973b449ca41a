/* kopt: 1
family: [register_caching, shape_specialization]
note: "a warp keeps its row in registers; the length is known to the compiler"
where: "C <= 1024"
specialize: [C]
launch:
  - kernel: softmax_registers
    grid: R
    block: 32
    args: [x, out]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Mapping: the warp of block b owns row b.

#include <cuda_runtime.h>
#include <math_constants.h>

template <int kColumns, int kLanes = 32>
__device__ void softmax_row(const float* from, float* to) {
  constexpr int kPer = (kColumns + kLanes - 1) / kLanes;
  float v[kPer], most = -CUDART_INF_F, sum = 0.0f;
  const int lane = threadIdx.x % kLanes;
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int c = i * kLanes + lane;
    v[i] = c < kColumns ? from[c] : -CUDART_INF_F;
    most = max(most, v[i]);
  }
#pragma unroll
  for (int mask = kLanes / 2; mask >= 1; mask >>= 1) {
    most = max(most, __shfl_xor_sync(~0u, most, mask, kLanes));
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    v[i] = __expf(v[i] - most);
    sum += v[i];
  }
#pragma unroll
  for (int mask = kLanes / 2; mask >= 1; mask >>= 1) sum += __shfl_xor_sync(~0u, sum, mask, kLanes);
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int c = i * kLanes + lane;
    if (c < kColumns) to[c] = __fdividef(v[i], sum);
  }
}

extern "C" __global__ void softmax_registers(const float* __restrict__ x, float* __restrict__ out) {
  softmax_row<KOPT_C>(x + size_t(blockIdx.x) * KOPT_C, out + size_t(blockIdx.x) * KOPT_C);
}
