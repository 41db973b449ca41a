/* kopt: 1
family: vectorization
note: "C++20: a concept names what may be loaded as one vector, a span walks it"
where: "B <= 8 and H % 8 == 0"
launch:
  - kernel: silu_and_mul_spans
    grid: ceil_div(H, 1024), B
    block: 128
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns the 8 columns from 8 (128 x + t) on of row b.

#include <bit>
#include <concepts>
#include <cuda_bf16.h>
#include <span>

template <class T>
concept Packable = sizeof(T) == 2 && requires(T value) { static_cast<float>(value); };

template <Packable T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
  __device__ std::span<T, N> all() { return std::span<T, N>(values); }
};

consteval int pack_width() { return 16 / sizeof(__nv_bfloat16); }

using Row = Pack<__nv_bfloat16, pack_width()>;

template <std::floating_point F>
__device__ F silu(F x) {
  return x / (F(1) + __expf(-x));
}

extern "C" __global__ void __launch_bounds__(128)
    silu_and_mul_spans(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const int pack = blockIdx.x * 128 + threadIdx.x, packs = H / pack_width();
  if (pack >= packs) return;
  const Row* gates = reinterpret_cast<const Row*>(input) + size_t(blockIdx.y) * 2 * packs;
  Row gate = gates[pack], up = gates[packs + pack];
  Row product{.values = {}};
  int i = 0;
  for (__nv_bfloat16& value : product.all()) {
    value = __float2bfloat16(silu(__bfloat162float(gate.values[i])) *
                             __bfloat162float(up.values[i]));
    ++i;
  }
  static_assert(std::bit_cast<unsigned>(1.0f) == 0x3f800000u);
  reinterpret_cast<Row*>(out)[size_t(blockIdx.y) * packs + pack] = product;
}
