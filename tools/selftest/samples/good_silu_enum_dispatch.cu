/* kopt: 1
family: other
note: "an enumeration picks the activation at compile time, a namespace holds the details"
where: "B <= 8"
launch:
  - kernel: silu_enum_dispatch
    grid: ceil_div(H, 256), B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns column 256 x + t of row b.

#include <cuda_bf16.h>

namespace act {
enum class Kind : int { kSilu, kGelu, kRelu };

namespace detail {
constexpr float kAlpha = 0.7978845608f;
template <Kind K>
struct Apply;
template <>
struct Apply<Kind::kSilu> {
  static __device__ float value(float x) { return x / (1.0f + __expf(-x)); }
};
template <>
struct Apply<Kind::kGelu> {
  static __device__ float value(float x) {
    return 0.5f * x * (1.0f + tanhf(kAlpha * (x + 0.044715f * x * x * x)));
  }
};
}  // namespace detail

template <Kind K>
__device__ float apply(float x) {
  if constexpr (K == Kind::kRelu) {
    return fmaxf(x, 0.0f);
  } else {
    return detail::Apply<K>::value(x);
  }
}
}  // namespace act

using bf16 = __nv_bfloat16;

extern "C" __global__ void silu_enum_dispatch(const bf16* input, bf16* out, int H) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  if (column >= H) return;
  const bf16* row = input + blockIdx.y * (2ll * H);
  const float y = act::apply<act::Kind::kSilu>(float(row[column])) * float(row[H + column]);
  out[blockIdx.y * (long long)H + column] = bf16(y);
}
