// bf16 and fp16 functions that CUDA's headers give to the device only: computed in fp32, rounded
// once to nearest even as the device does.
#pragma once

namespace kopt_sim {
// a * b + c so that rounding it once more is rounding it once: to odd, the product being exact.
// Source: Boldo, Melquiond, "Emulation of FMA and correctly rounded sums", IEEE TC 57(4), 2008.
inline double fma_to_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double from_c = sum - product;
  const double error = (product - (sum - from_c)) + (c - from_c);
  const auto bits = bit_cast<std::uint64_t>(sum);
  if (error == 0 || (bits & 1u) != 0) return sum;
  return bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
}  // namespace kopt_sim

inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __double2bfloat16(
      kopt_sim::fma_to_odd(__bfloat162float(a), __bfloat162float(b), __bfloat162float(c)));
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __nv_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
inline __half __hfma(__half a, __half b, __half c) {
  return __double2half(
      kopt_sim::fma_to_odd(__half2float(a), __half2float(b), __half2float(c)));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}

#define KOPT_SIM_UNARY(NAME, FLOAT)                                                       \
  inline __nv_bfloat16 h##NAME(__nv_bfloat16 a) {                                         \
    return __float2bfloat16_rn(FLOAT(__bfloat162float(a)));                               \
  }                                                                                       \
  inline __nv_bfloat162 h2##NAME(__nv_bfloat162 a) {                                      \
    return __nv_bfloat162(h##NAME(a.x), h##NAME(a.y));                                    \
  }                                                                                       \
  inline __half h##NAME(__half a) { return __float2half_rn(FLOAT(__half2float(a))); }     \
  inline __half2 h2##NAME(__half2 a) { return __half2(h##NAME(a.x), h##NAME(a.y)); }
KOPT_SIM_UNARY(exp, expf)
KOPT_SIM_UNARY(exp2, exp2f)
KOPT_SIM_UNARY(exp10, exp10f)
KOPT_SIM_UNARY(log, logf)
KOPT_SIM_UNARY(log2, log2f)
KOPT_SIM_UNARY(log10, log10f)
KOPT_SIM_UNARY(sqrt, sqrtf)
KOPT_SIM_UNARY(rsqrt, rsqrtf)
KOPT_SIM_UNARY(sin, sinf)
KOPT_SIM_UNARY(cos, cosf)
KOPT_SIM_UNARY(tanh, tanhf)
KOPT_SIM_UNARY(ceil, ceilf)
KOPT_SIM_UNARY(floor, floorf)
KOPT_SIM_UNARY(rint, rintf)
KOPT_SIM_UNARY(trunc, truncf)
KOPT_SIM_UNARY(rcp, 1.0f /)
#undef KOPT_SIM_UNARY

// A fused product and sum that is then cut off below 0, or to 0 to 1; NaN gives 0 there.
#define KOPT_SIM_FUSED(T, T2)                                                                \
  inline T __hfma_relu(T a, T b, T c) {                                                      \
    const T r = __hfma(a, b, c);                                                             \
    return __hisnan(r) || static_cast<float>(r) > 0.0f ? r : T(0.0f);                        \
  }                                                                                          \
  inline T __hfma_sat(T a, T b, T c) {                                                       \
    return T(__saturatef(static_cast<float>(__hfma(a, b, c))));                              \
  }                                                                                          \
  inline T2 __hfma2_relu(T2 a, T2 b, T2 c) {                                                 \
    return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                       \
  }                                                                                          \
  inline T2 __hfma2_sat(T2 a, T2 b, T2 c) {                                                  \
    return T2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                         \
  }                                                                                          \
  inline T2 __hcmadd(T2 a, T2 b, T2 c) {                                                     \
    const T real = __hfma(a.x, b.x, c.x), imaginary = __hfma(a.x, b.y, c.y);                 \
    return T2(__hfma(__hneg(a.y), b.y, real), __hfma(a.y, b.x, imaginary));                  \
  }
KOPT_SIM_FUSED(__nv_bfloat16, __nv_bfloat162)
KOPT_SIM_FUSED(__half, __half2)
#undef KOPT_SIM_FUSED

// Two roundings in one direction are one: by way of float32.
#define KOPT_SIM_BF16_INTEGER(NAME, INT, HOW)                                                \
  inline INT __bfloat162##NAME##_##HOW(__nv_bfloat16 x) {                                    \
    return kopt_sim::narrow_integer<INT>(__float2ll_##HOW(__bfloat162float(x)));             \
  }
#define KOPT_SIM_BF16_INTEGERS(NAME, INT)  \
  KOPT_SIM_BF16_INTEGER(NAME, INT, rn)     \
  KOPT_SIM_BF16_INTEGER(NAME, INT, rd)     \
  KOPT_SIM_BF16_INTEGER(NAME, INT, ru)
#define KOPT_SIM_BF16_WIDE(NAME, HOW)                                                        \
  inline decltype(__float2##NAME##_##HOW(0.0f)) __bfloat162##NAME##_##HOW(__nv_bfloat16 x) { \
    return __float2##NAME##_##HOW(__bfloat162float(x));                                      \
  }
#define KOPT_SIM_BF16_FROM(NAME, INT, WIDE, HOW)                                             \
  inline __nv_bfloat16 __##NAME##2bfloat16_##HOW(INT x) {                                    \
    return __float2bfloat16_##HOW(__##WIDE##2float_##HOW(x));                                \
  }
#define KOPT_SIM_BF16_DIRECTION(HOW)                       \
  KOPT_SIM_BF16_FROM(int, int, int, HOW)                   \
  KOPT_SIM_BF16_FROM(uint, unsigned, uint, HOW)            \
  KOPT_SIM_BF16_FROM(short, short, int, HOW)               \
  KOPT_SIM_BF16_FROM(ushort, unsigned short, uint, HOW)    \
  KOPT_SIM_BF16_FROM(ll, long long, ll, HOW)               \
  KOPT_SIM_BF16_FROM(ull, unsigned long long, ull, HOW)
namespace kopt_sim {
template <class Int>
inline Int narrow_integer(long long x) {
  constexpr long long kLowest = std::numeric_limits<Int>::min();
  constexpr long long kHighest = std::numeric_limits<Int>::max();
  return static_cast<Int>(x < kLowest ? kLowest : x > kHighest ? kHighest : x);
}
}  // namespace kopt_sim
KOPT_SIM_BF16_INTEGERS(short, short)
KOPT_SIM_BF16_INTEGERS(ushort, unsigned short)
KOPT_SIM_BF16_WIDE(int, rn)
KOPT_SIM_BF16_WIDE(int, rd)
KOPT_SIM_BF16_WIDE(int, ru)
KOPT_SIM_BF16_WIDE(uint, rn)
KOPT_SIM_BF16_WIDE(uint, rd)
KOPT_SIM_BF16_WIDE(uint, ru)
KOPT_SIM_BF16_WIDE(ll, rn)
KOPT_SIM_BF16_WIDE(ll, rd)
KOPT_SIM_BF16_WIDE(ll, ru)
KOPT_SIM_BF16_WIDE(ull, rn)
KOPT_SIM_BF16_WIDE(ull, rd)
KOPT_SIM_BF16_WIDE(ull, ru)
KOPT_SIM_BF16_DIRECTION(rd)
KOPT_SIM_BF16_DIRECTION(ru)
KOPT_SIM_BF16_DIRECTION(rz)
#undef KOPT_SIM_BF16_DIRECTION
#undef KOPT_SIM_BF16_FROM
#undef KOPT_SIM_BF16_WIDE
#undef KOPT_SIM_BF16_INTEGERS
#undef KOPT_SIM_BF16_INTEGER
