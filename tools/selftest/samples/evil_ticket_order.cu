/* kopt: 1
family: other
note: "rows are drawn by a ticket, outputs go by block index: right while blocks run in order"
scratch: {ticket: {dtype: int32, shape: "1", init: zero}}
where: "B <= 8"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, ticket, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=incorrect level=full says=row
// Nothing says in which order blocks start: other schedules give other rows.

#include <cuda_bf16.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int* ticket,
                                        int H) {
  __shared__ int row;
  if (threadIdx.x == 0) row = atomicAdd(ticket, 1);
  __syncthreads();
  const __nv_bfloat16* gate = input + static_cast<size_t>(row) * 2 * H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;
  for (int column = threadIdx.x; column < H; column += 256) {
    out_row[column] = silu_mul(gate[column], gate[H + column]);
  }
}
