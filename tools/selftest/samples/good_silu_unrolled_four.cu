/* kopt: 1
family: ilp_unroll
note: "four independent columns a thread, loads before arithmetic"
where: "B <= 8"
launch:
  - kernel: silu_unrolled_four
    grid: ceil_div(H, 1024), B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns columns 1,024 x + t, + 256, + 512, + 768 of row b.

#include <cuda_bf16.h>

template <int UNROLL>
__device__ __forceinline__ void columns(const __nv_bfloat16* row, __nv_bfloat16* to, int H) {
  float gate[UNROLL], up[UNROLL];
  const int first = blockIdx.x * (UNROLL * 256) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    const int column = first + i * 256;
    gate[i] = column < H ? __bfloat162float(row[column]) : 0.0f;
    up[i] = column < H ? __bfloat162float(row[H + column]) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    const int column = first + i * 256;
    if (column < H) to[column] = __float2bfloat16(gate[i] / (1.0f + __expf(-gate[i])) * up[i]);
  }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    silu_unrolled_four(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  columns<4>(input + size_t(blockIdx.y) * 2 * H, out + size_t(blockIdx.y) * H, H);
}
