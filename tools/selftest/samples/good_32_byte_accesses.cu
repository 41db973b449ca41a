/* kopt: 1
family: vectorization
note: "32-byte accesses, one instruction each on sm_100: 16 bf16 per thread"
where: "B <= 8 and H % 16 == 0"
launch:
  - kernel: silu_and_mul_32_bytes
    grid: ceil_div(H // 16, 128), B
    block: 128
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns the 16 columns from 16 (128 x + t) on of row b.

#include <cuda_bf16.h>
#include <kopt/global_access.cuh>

__device__ unsigned silu_mul(unsigned gates, unsigned ups) {
  const float2 g = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(gates));
  const float2 u = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(ups));
  const __nv_bfloat162 result =
      __floats2bfloat162_rn(g.x / (1.0f + __expf(-g.x)) * u.x, g.y / (1.0f + __expf(-g.y)) * u.y);
  return reinterpret_cast<const unsigned&>(result);
}

__device__ uint4 silu_mul(uint4 gates, uint4 ups) {
  return make_uint4(silu_mul(gates.x, ups.x), silu_mul(gates.y, ups.y), silu_mul(gates.z, ups.z),
                    silu_mul(gates.w, ups.w));
}

extern "C" __global__ void silu_and_mul_32_bytes(const __nv_bfloat16* input, __nv_bfloat16* out,
                                                 int H) {
  const int column = (blockIdx.x * 128 + threadIdx.x) * 16;
  if (column >= H) return;
  const __nv_bfloat16* gate_row = input + static_cast<size_t>(blockIdx.y) * 2 * H;
  const kopt::uint8x32_t gate = kopt::load_32(gate_row + column);
  const kopt::uint8x32_t up = kopt::load_32(gate_row + H + column);
  kopt::store_32(out + static_cast<size_t>(blockIdx.y) * H + column,
                 {silu_mul(gate.low, up.low), silu_mul(gate.high, up.high)});
}
