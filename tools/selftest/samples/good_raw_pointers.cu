/* kopt: 1
family: vectorization
note: "the library's signature: untyped pointers, sizes as size_t and unsigned, a struct of arguments"
where: "B <= 8 and H % 8 == 0"
launch:
  - kernel: silu_and_mul_untyped
    grid: ceil_div(H // 8, 128), B
    block: 128
    args: [out, input, H, {int32: "H // 8"}]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns the 8 columns from 8 (128 x + t) on of row b.

#include <cstdint>
#include <cuda_bf16.h>

struct ActivationParams {
  void* out;
  const uint4* input;
  size_t hidden;
  uint32_t vectors;
};

template <typename T, uint32_t kWidth>
struct vec_t {
  uint4 raw;
  __device__ __forceinline__ T& operator[](uint32_t i) { return reinterpret_cast<T*>(&raw)[i]; }
  __device__ __forceinline__ void load(const uint4* from) { raw = *from; }
  __device__ __forceinline__ void store(uint4* to) const { *to = raw; }
};

template <typename T, uint32_t kWidth>
__device__ __forceinline__ void act_and_mul(const ActivationParams& params) {
  const uint32_t idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= params.vectors) return;
  vec_t<T, kWidth> gate, up, product;
  gate.load(params.input + blockIdx.y * (params.hidden / 4) + idx);
  up.load(params.input + blockIdx.y * (params.hidden / 4) + params.vectors + idx);
#pragma unroll
  for (uint32_t i = 0; i < kWidth; ++i) {
    const float x = static_cast<float>(gate[i]);
    product[i] = static_cast<T>(x / (1.0f + __expf(-x)) * static_cast<float>(up[i]));
  }
  product.store(static_cast<uint4*>(params.out) + size_t(blockIdx.y) * params.vectors + idx);
}

extern "C" __global__ void __launch_bounds__(128)
    silu_and_mul_untyped(void* __restrict__ out, const uint4* __restrict__ input, size_t hidden,
                         unsigned vectors) {
  const ActivationParams params{out, input, hidden, vectors};
  act_and_mul<__nv_bfloat16, 8>(params);
}
