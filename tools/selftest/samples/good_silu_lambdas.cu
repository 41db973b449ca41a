/* kopt: 1
family: other
note: "generic lambdas: one loads, one computes, a fold applies them to a pack of indices"
where: "B <= 8"
launch:
  - kernel: silu_lambdas
    grid: ceil_div(H, 384), B
    block: 128
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns three columns, 128 apart, from 384 x + t on.

#include <cuda_bf16.h>
#include <utility>

template <class Function, int... I>
__device__ __forceinline__ void for_each_index(std::integer_sequence<int, I...>, Function f) {
  (f(std::integral_constant<int, I>{}), ...);
}

extern "C" __global__ void silu_lambdas(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const auto* row = input + size_t(blockIdx.y) * 2 * H;
  auto* to = out + size_t(blockIdx.y) * H;
  const auto load = [=](int column) { return __bfloat162float(row[column]); };
  const auto silu = [](auto x) { return x / (decltype(x)(1) + __expf(-x)); };
  for_each_index(std::make_integer_sequence<int, 3>{}, [&](auto part) {
    const int column = (blockIdx.x * 3 + decltype(part)::value) * 128 + threadIdx.x;
    if (column < H) to[column] = __float2bfloat16(silu(load(column)) * load(H + column));
  });
}
