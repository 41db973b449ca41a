/* kopt: 1
family: other
note: "a dependent launch that reads its input before it waits, to have it in the caches"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    pdl: true
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=data_race level=quick says=griddepcontrol_wait
// In a model the kernel before is only then writing the input.

#include <cuda_bf16.h>
#include <kopt/griddepcontrol.cuh>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const size_t first = static_cast<size_t>(blockIdx.x) * 2 * H;
  const volatile unsigned short* words = reinterpret_cast<const unsigned short*>(input);
  unsigned touched = 0;
  for (int i = threadIdx.x * 64; i < 2 * H; i += 256 * 64) {
    touched |= words[first + i];  // <- here
  }
  kopt::griddepcontrol_wait();
  if (touched == 0xffffffffu) return;  // never: 16 bits at most
  for (int h = threadIdx.x; h < H; h += 256) {
    out[static_cast<size_t>(blockIdx.x) * H + h] = silu_mul(input[first + h], input[first + H + h]);
  }
}
