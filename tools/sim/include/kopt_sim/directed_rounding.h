// Arithmetic and conversions that round up, down or toward zero. A float is rounded once from a
// double that lost nothing but a sticky bit; a double from the nearest one and the sign of its error.
#pragma once

namespace kopt_sim {

enum class Round { kDown, kUp, kZero };

// The neighbor of `nearest` that `direction` asks for; `error` is the exact value less `nearest`.
template <class T, class Error>
inline T directed(T nearest, Error error, Round direction) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (error == 0 || nearest != nearest) return nearest;
  const bool up = error > 0;
  switch (direction) {
    case Round::kDown: return up ? nearest : std::nextafter(nearest, -kInfinity);
    case Round::kUp: return up ? std::nextafter(nearest, kInfinity) : nearest;
    default:
      if (nearest > 0) return up ? nearest : std::nextafter(nearest, T(0));
      return up ? std::nextafter(nearest, T(0)) : nearest;
  }
}
// From a wider type that holds `x` exactly, or all of it but a sticky bit.
template <class T, class Wide>
inline T narrowed(Wide x, Round direction) {
  const T nearest = static_cast<T>(x);
  if (x != x || static_cast<Wide>(nearest) == x) return nearest;
  return directed(nearest, static_cast<Wide>(nearest) < x ? 1 : -1, direction);
}
// `x` with its last bit set where something is missing: `error` is the exact value less `x`.
inline double sticky(double x, double error) {
  const auto bits = bit_cast<std::uint64_t>(x);
  if (error == 0 || error != error || (bits & 1u) != 0) return x;
  return bit_cast<double>((error > 0) == (x > 0) ? bits + 1 : bits - 1);
}
inline double sum_error(double a, double b, double sum) {
  const double from_b = sum - a;
  return (a - (sum - from_b)) + (b - from_b);
}
// Source: Boldo, Muller, "Exact and approximated error of the FMA", IEEE TC 60(2), 2011.
inline double fma_error(double a, double b, double c, double nearest) {
  volatile const double rounded = a * b;  // not to be fused with the sums below
  const double product = rounded, low = __builtin_fma(a, b, -product);
  const double first = c + low, first_error = sum_error(c, low, first);
  const double second = product + first, second_error = sum_error(product, first, second);
  return ((second - nearest) + second_error) + first_error;
}

inline double add(double a, double b, Round r) {
  const double sum = a + b;
  return directed(sum, sum_error(a, b, sum), r);
}
inline double mul(double a, double b, Round r) {
  const double product = a * b;
  return directed(product, __builtin_fma(a, b, -product), r);
}
inline double fma(double a, double b, double c, Round r) {
  const double nearest = __builtin_fma(a, b, c);
  return directed(nearest, fma_error(a, b, c, nearest), r);
}
// The remainder has the sign of the quotient's error, times that of the divisor.
inline double div_error(double a, double b, double quotient) {
  const double rest = __builtin_fma(-quotient, b, a);
  return b < 0 ? -rest : rest;
}
inline double div(double a, double b, Round r) {
  const double quotient = a / b;
  return directed(quotient, div_error(a, b, quotient), r);
}
inline double root(double x, Round r) {
  const double nearest = std::sqrt(x);
  return directed(nearest, __builtin_fma(-nearest, nearest, x), r);
}

inline float add(float a, float b, Round r) {
  const double x = a, y = b, sum = x + y;
  return narrowed<float>(sticky(sum, sum_error(x, y, sum)), r);
}
inline float mul(float a, float b, Round r) {
  return narrowed<float>(static_cast<double>(a) * static_cast<double>(b), r);
}
inline float fma(float a, float b, float c, Round r) {
  const double nearest = __builtin_fma(static_cast<double>(a), b, c);
  return narrowed<float>(sticky(nearest, fma_error(a, b, c, nearest)), r);
}
inline float div(float a, float b, Round r) {
  const double quotient = static_cast<double>(a) / b;
  return narrowed<float>(sticky(quotient, div_error(a, b, quotient)), r);
}
inline float root(float x, Round r) {
  const double nearest = std::sqrt(static_cast<double>(x));
  return narrowed<float>(sticky(nearest, __builtin_fma(-nearest, nearest, x)), r);
}
}  // namespace kopt_sim

#define KOPT_SIM_DIRECTED(SUFFIX, ROUND)                                                          \
  inline float __fadd_##SUFFIX(float x, float y) { return kopt_sim::add(x, y, ROUND); }           \
  inline float __fsub_##SUFFIX(float x, float y) { return kopt_sim::add(x, -y, ROUND); }          \
  inline float __fmul_##SUFFIX(float x, float y) { return kopt_sim::mul(x, y, ROUND); }           \
  inline float __fdiv_##SUFFIX(float x, float y) { return kopt_sim::div(x, y, ROUND); }           \
  inline float __frcp_##SUFFIX(float x) { return kopt_sim::div(1.0f, x, ROUND); }                 \
  inline float __fsqrt_##SUFFIX(float x) { return kopt_sim::root(x, ROUND); }                     \
  inline float __fmaf_##SUFFIX(float x, float y, float z) { return kopt_sim::fma(x, y, z, ROUND); } \
  inline float __fmaf_ieee_##SUFFIX(float x, float y, float z) {                                  \
    return kopt_sim::fma(x, y, z, ROUND);                                                         \
  }                                                                                               \
  inline double __dadd_##SUFFIX(double x, double y) { return kopt_sim::add(x, y, ROUND); }        \
  inline double __dsub_##SUFFIX(double x, double y) { return kopt_sim::add(x, -y, ROUND); }       \
  inline double __dmul_##SUFFIX(double x, double y) { return kopt_sim::mul(x, y, ROUND); }        \
  inline double __ddiv_##SUFFIX(double x, double y) { return kopt_sim::div(x, y, ROUND); }        \
  inline double __drcp_##SUFFIX(double x) { return kopt_sim::div(1.0, x, ROUND); }                \
  inline double __dsqrt_##SUFFIX(double x) { return kopt_sim::root(x, ROUND); }                   \
  inline double __fma_##SUFFIX(double x, double y, double z) {                                    \
    return kopt_sim::fma(x, y, z, ROUND);                                                         \
  }                                                                                               \
  inline float __double2float_##SUFFIX(double x) { return kopt_sim::narrowed<float>(x, ROUND); }  \
  inline float __int2float_##SUFFIX(int x) {                                                      \
    return kopt_sim::narrowed<float>(static_cast<double>(x), ROUND);                              \
  }                                                                                               \
  inline float __uint2float_##SUFFIX(unsigned x) {                                                \
    return kopt_sim::narrowed<float>(static_cast<double>(x), ROUND);                              \
  }                                                                                               \
  inline float __ll2float_##SUFFIX(long long x) {                                                 \
    return kopt_sim::narrowed<float>(static_cast<long double>(x), ROUND);                         \
  }                                                                                               \
  inline float __ull2float_##SUFFIX(unsigned long long x) {                                       \
    return kopt_sim::narrowed<float>(static_cast<long double>(x), ROUND);                         \
  }                                                                                               \
  inline double __ll2double_##SUFFIX(long long x) {                                               \
    return kopt_sim::narrowed<double>(static_cast<long double>(x), ROUND);                        \
  }                                                                                               \
  inline double __ull2double_##SUFFIX(unsigned long long x) {                                     \
    return kopt_sim::narrowed<double>(static_cast<long double>(x), ROUND);                        \
  }
KOPT_SIM_DIRECTED(rd, kopt_sim::Round::kDown)
KOPT_SIM_DIRECTED(ru, kopt_sim::Round::kUp)
KOPT_SIM_DIRECTED(rz, kopt_sim::Round::kZero)
#undef KOPT_SIM_DIRECTED

inline double __dsub_rn(double x, double y) { volatile double r = x - y; return r; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
