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
