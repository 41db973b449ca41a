/* kopt: 1
family: other
note: "parameters of the activation in constant memory, a table of segments"
where: "B <= 8"
launch:
  - kernel: silu_constant_memory
    grid: ceil_div(H, 256), B
    block: 256
    args: [input, out, H, {int32: 0}]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns column 256 x + t of row b.

#include <cuda_bf16.h>

struct Activation {
  float slope;
  float shift;
};
__constant__ Activation kActivations[2] = {{1.0f, 0.0f}, {1.702f, 0.0f}};

extern "C" __global__ void silu_constant_memory(const __nv_bfloat16* input, __nv_bfloat16* out,
                                                int H, int which) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  if (column >= H) return;
  const Activation a = kActivations[which];
  const __nv_bfloat16* row = input + size_t(blockIdx.y) * 2 * H;
  const float g = __bfloat162float(row[column]);
  const float y = g / (1.0f + __expf(-(a.slope * g + a.shift)));
  out[size_t(blockIdx.y) * H + column] = __float2bfloat16(y * __bfloat162float(row[H + column]));
}
