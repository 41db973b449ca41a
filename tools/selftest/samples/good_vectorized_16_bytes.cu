/* kopt: 1
family: vectorization
note: "16-byte loads and stores: 8 bf16 per thread and access"
where: "B <= 8 and H % 8 == 0"
tune: {BLOCK: [256, 128]}
launch:
  - kernel: silu_and_mul_vectorized
    grid: ceil_div(H // 8, BLOCK), B
    block: BLOCK
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns the 8 columns from 8 (BLOCK x + t) on of row b. Rows are a
// multiple of 16 bytes long (`where`), so every access is aligned.

#include <cuda_bf16.h>

__device__ __nv_bfloat162 silu_mul(__nv_bfloat162 gates, __nv_bfloat162 ups) {
  const float2 g = __bfloat1622float2(gates);
  const float2 u = __bfloat1622float2(ups);
  return __floats2bfloat162_rn(g.x / (1.0f + __expf(-g.x)) * u.x,
                               g.y / (1.0f + __expf(-g.y)) * u.y);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    silu_and_mul_vectorized(const __nv_bfloat16* __restrict__ input,
                            __nv_bfloat16* __restrict__ out, int H) {
  const int vectors = H / 8;
  const int vector = blockIdx.x * BLOCK + threadIdx.x;
  if (vector >= vectors) return;
  const uint4* row =
      reinterpret_cast<const uint4*>(input) + static_cast<size_t>(blockIdx.y) * 2 * vectors;
  const uint4 gate = row[vector];
  const uint4 up = row[vectors + vector];
  const __nv_bfloat162* gates = reinterpret_cast<const __nv_bfloat162*>(&gate);
  const __nv_bfloat162* ups = reinterpret_cast<const __nv_bfloat162*>(&up);
  uint4 packed;
  __nv_bfloat162* results = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
  for (int i = 0; i < 4; ++i) results[i] = silu_mul(gates[i], ups[i]);
  reinterpret_cast<uint4*>(out)[static_cast<size_t>(blockIdx.y) * vectors + vector] = packed;
}
