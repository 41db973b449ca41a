/* kopt: 1
family: other
note: "the gate is copied to the output first, one vector too many: it is the next row's"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=data_race level=quick says=out
// Two blocks store other values to the first vector of a row; which one stays is chance.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const size_t row = blockIdx.x;
  const int vectors = H / 8 + (row + 1 < gridDim.x ? 1 : 0);
  for (int vector = threadIdx.x; vector < vectors; vector += 256) {
    const uint4* gates = reinterpret_cast<const uint4*>(input + row * 2 * H);
    reinterpret_cast<uint4*>(out + row * H)[vector] = gates[vector];  // <- here
  }
  __syncthreads();
  for (int column = threadIdx.x; column < H; column += 256) {
    out[row * H + column] =
        silu_mul(out[row * H + column], input[row * 2 * H + H + column]);  // <- here
  }
}
