/* kopt: 1
family: other
note: "static polymorphism: the derived class knows the activation, the base the loop"
where: "B <= 8"
launch:
  - kernel: silu_crtp
    grid: 16, B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: blocks (x, b) stride over row b together.

#include <cuda_bf16.h>

template <class Derived>
struct RowKernel {
  const __nv_bfloat16* input;
  __nv_bfloat16* out;
  unsigned hidden;

  __device__ void run() const {
    const unsigned stride = gridDim.x * blockDim.x;
    for (unsigned c = blockIdx.x * blockDim.x + threadIdx.x; c < hidden; c += stride) store(c);
  }

 private:
  __device__ void store(unsigned c) const {
    const __nv_bfloat16* row = input + size_t(blockIdx.y) * 2 * hidden;
    const float gate = __bfloat162float(row[c]), up = __bfloat162float(row[hidden + c]);
    out[size_t(blockIdx.y) * hidden + c] =
        __float2bfloat16(static_cast<const Derived*>(this)->activation(gate) * up);
  }
};

struct SiluRow : RowKernel<SiluRow> {
  __device__ float activation(float x) const { return __fdividef(x, 1.0f + __expf(-x)); }
};

extern "C" __global__ void silu_crtp(const __nv_bfloat16* input, __nv_bfloat16* out, unsigned H) {
  SiluRow kernel;
  kernel.input = input;
  kernel.out = out;
  kernel.hidden = H;
  kernel.run();
}
