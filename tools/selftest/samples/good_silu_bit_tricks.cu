/* kopt: 1
family: packed_simd
note: "bf16 taken apart and rounded by integer arithmetic"
where: "B <= 8"
launch:
  - kernel: silu_bit_tricks
    grid: ceil_div(H, 256), B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns column 256 x + t of row b.

#include <cstdint>
#include <cuda_bf16.h>

__device__ __forceinline__ float widen(uint16_t bits) { return __uint_as_float(uint32_t(bits) << 16); }

// Round to nearest even; NaN keeps its sign and becomes quiet.
__device__ __forceinline__ uint16_t narrow(float x) {
  const uint32_t bits = __float_as_uint(x);
  if (isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

extern "C" __global__ void silu_bit_tricks(const unsigned short* input, unsigned short* out,
                                           size_t H) {
  const size_t column = blockIdx.x * 256u + threadIdx.x;
  if (column >= H) return;
  const float g = widen(input[blockIdx.y * 2 * H + column]);
  const float u = widen(input[blockIdx.y * 2 * H + H + column]);
  out[blockIdx.y * H + column] = narrow(g / (1.0f + __expf(-g)) * u);
}
