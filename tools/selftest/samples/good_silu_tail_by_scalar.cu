/* kopt: 1
family: vectorization
note: "whole vectors by 8, then a scalar tail: any row length"
where: "B <= 8"
launch:
  - kernel: silu_tail_by_scalar
    grid: 4, B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: blocks (0, b) to (3, b) stride over row b.

#include <cstdint>
#include <cuda_bf16.h>

__device__ __forceinline__ uint32_t two(uint32_t gates, uint32_t ups) {
  const float2 g = __bfloat1622float2(reinterpret_cast<__nv_bfloat162&>(gates));
  const float2 u = __bfloat1622float2(reinterpret_cast<__nv_bfloat162&>(ups));
  const __nv_bfloat162 y = __floats2bfloat162_rn(g.x / (1.0f + __expf(-g.x)) * u.x,
                                                 g.y / (1.0f + __expf(-g.y)) * u.y);
  return reinterpret_cast<const uint32_t&>(y);
}

extern "C" __global__ void silu_tail_by_scalar(const __nv_bfloat16* input, __nv_bfloat16* out,
                                               uint32_t H) {
  const __nv_bfloat16* gate = input + uint64_t(blockIdx.y) * 2 * H;
  __nv_bfloat16* to = out + uint64_t(blockIdx.y) * H;
  const bool is_aligned = H % 8 == 0;
  const uint32_t vectors = is_aligned ? H / 8 : 0;
  for (uint32_t v = blockIdx.x * blockDim.x + threadIdx.x; v < vectors;
       v += gridDim.x * blockDim.x) {
    const uint4 g = reinterpret_cast<const uint4*>(gate)[v];
    const uint4 u = reinterpret_cast<const uint4*>(gate + H)[v];
    reinterpret_cast<uint4*>(to)[v] =
        make_uint4(two(g.x, u.x), two(g.y, u.y), two(g.z, u.z), two(g.w, u.w));
  }
  for (uint32_t c = vectors * 8 + blockIdx.x * blockDim.x + threadIdx.x; c < H;
       c += gridDim.x * blockDim.x) {
    const float g = __bfloat162float(gate[c]);
    to[c] = __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(gate[H + c]));
  }
}
