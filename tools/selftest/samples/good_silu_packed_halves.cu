/* kopt: 1
family: packed_simd
note: "the product in packed bf16 after a sigmoid in float32"
where: "B <= 8 and H % 2 == 0"
launch:
  - kernel: silu_packed_halves
    grid: ceil_div(H // 2, 256), B
    block: 256
    args: [input, out, {int32: "H // 2"}]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns pair 256 x + t of row b.

#include <cuda_bf16.h>

extern "C" __global__ void silu_packed_halves(const __nv_bfloat162* input, __nv_bfloat162* out,
                                              int pairs) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= pairs) return;
  const __nv_bfloat162 gate = __ldg(input + size_t(blockIdx.y) * 2 * pairs + i);
  const __nv_bfloat162 up = __ldcs(input + size_t(blockIdx.y) * 2 * pairs + pairs + i);
  const float low = __low2float(gate), high = __high2float(gate);
  const float2 y = make_float2(low / (1.0f + __expf(-low)) * __low2float(up),
                               high / (1.0f + __expf(-high)) * __high2float(up));
  __stcs(out + size_t(blockIdx.y) * pairs + i, __float22bfloat162_rn(y));
}
