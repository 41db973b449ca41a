/* kopt: 1
family: other
note: "a definition that changes a header of CUDA for nvcc"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=unsupported_on_sim level=quick says="put all includes first"
// nvcc would read another header than the simulator has.

#define coalesced_threads met_threads
#include <cooperative_groups.h>  // <- here
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float g = __bfloat162float(gate[column]), up = __bfloat162float(gate[H + column]);
    out_row[column] = __float2bfloat16(g / (1.0f + __expf(-g)) * up);
  }
}
