/* kopt: 1
family: other
note: "the activation is a functor, the kernel body a template over it"
where: "B <= 8"
launch:
  - kernel: silu_functor
    grid: ceil_div(H, 256), B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns column 256 x + t of row b.

#include <cuda_bf16.h>

struct Silu {
  __device__ __forceinline__ float operator()(float x) const { return x / (1.0f + __expf(-x)); }
};

template <class Activation, class T>
__device__ __forceinline__ void activate(const T* input, T* out, int H, Activation act) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= H) return;
  const T* row = input + size_t(blockIdx.y) * 2 * H;
  out[size_t(blockIdx.y) * H + column] =
      static_cast<T>(act(static_cast<float>(row[column])) * static_cast<float>(row[H + column]));
}

extern "C" __global__ void silu_functor(const __nv_bfloat16* __restrict__ input,
                                        __nv_bfloat16* __restrict__ out, int H) {
  activate(input, out, H, Silu{});
}
