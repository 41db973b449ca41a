/* kopt: 1
family: other
note: "one kernel from a macro with a pasted name, as libraries define a kernel for each type"
where: "B <= 8"
launch:
  - kernel: silu_macros
    grid: 8, B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: blocks (0, b) to (7, b) take steps of 2,048 columns of row b.

#include <cuda_bf16.h>

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define TO_FLOAT(x) static_cast<float>(x)
#define DEFINE_GATED_KERNEL(NAME, TYPE, EXPRESSION)                                      \
  extern "C" __global__ void silu_##NAME(const TYPE* in, TYPE* out, int n) {             \
    for (int step = 0; step < CEIL_DIV(n, 256 * 8); ++step) {                            \
      const int i = (step * 8 + blockIdx.x) * 256 + threadIdx.x;                         \
      if (i < n) {                                                                       \
        const float a = TO_FLOAT(in[size_t(blockIdx.y) * 2 * n + i]);                    \
        const float b = TO_FLOAT(in[size_t(blockIdx.y) * 2 * n + n + i]);                \
        out[size_t(blockIdx.y) * n + i] = static_cast<TYPE>(EXPRESSION);                 \
      }                                                                                  \
    }                                                                                    \
  }

DEFINE_GATED_KERNEL(macros, __nv_bfloat16, a / (1.0f + __expf(-a)) * b)
