// Functions of CUDA's math library that C++ lacks, computed in float64: norms, inverses of the error
// function and of the normal distribution, modified Bessel functions, multiples of pi.
#pragma once

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

namespace kopt_sim {
constexpr double kRootOfTwo = 1.4142135623730951, kPi = 3.141592653589793;

template <class... T>
inline double norm_of(T... x) {
  double sum = 0;
  ((sum = __builtin_fma(static_cast<double>(x), static_cast<double>(x), sum)), ...);
  return std::sqrt(sum);
}
template <class T>
inline double norm_of_array(int count, const T* x) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum = __builtin_fma(static_cast<double>(x[i]), x[i], sum);
  return std::sqrt(sum);
}
// Halley's method from a rational guess. Source: Press et al., Numerical Recipes, 6.2.2.
inline double inverse_erfc(double y) {
  if (!(y > 0 && y < 2)) return y == 0 ? HUGE_VAL : y == 2 ? -HUGE_VAL : NAN;
  const double tail = y < 1 ? y : 2 - y;
  const double t = std::sqrt(-2 * std::log(tail / 2));
  double x = -0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  for (int step = 0; step < 3; ++step) {
    const double error = std::erfc(x) - tail;
    x += error / (1.1283791670955126 * std::exp(-x * x) - x * error);
  }
  return y < 1 ? x : -x;
}
inline double inverse_erf(double x) {
  if (std::fabs(x) >= 0.5) return x > 0 ? inverse_erfc(1 - x) : -inverse_erfc(1 + x);
  double y = x * 0.8862269254527580;
  for (int step = 0; step < 4; ++step) {
    const double error = std::erf(y) - x;
    y -= error / (1.1283791670955126 * std::exp(-y * y) + y * error);
  }
  return y;
}
inline double scaled_erfc(double x) {
  if (x < 10) return std::exp(x * x) * std::erfc(x);
  const double s = 1 / (2 * x * x);
  return (1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s)))) / (x * 1.7724538509055160);
}
// The series of I_order, which has positive terms only.
inline double bessel_i(int order, double x) {
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; std::fabs(term) > 1e-17 * std::fabs(sum); ++k) {
    term *= x * x / (4.0 * k * (k + order));
    sum += term;
  }
  return sum;
}
inline double sine_of_pi(double x) {
  const double turn = std::remainder(x, 2.0);
  if (turn == std::trunc(turn)) return std::copysign(0.0, x);
  return std::sin(kPi * (std::fabs(turn) > 0.5 ? std::copysign(1.0, turn) - turn : turn));
}
inline double cosine_of_pi(double x) {
  const double turn = std::fabs(std::remainder(x, 2.0));
  return turn == 0.5 ? 0.0 : turn < 0.25 ? std::cos(kPi * turn) : sine_of_pi(0.5 - turn);
}
}  // namespace kopt_sim

// NAME(parameters) in float64, NAMEf in float32; double and float of `arguments` alike.
#define KOPT_SIM_BOTH_1(NAME, EXPRESSION)                                              \
  inline double NAME(double x) { return EXPRESSION; }                                  \
  inline float NAME##f(float f) { const double x = f; return static_cast<float>(EXPRESSION); }
KOPT_SIM_BOTH_1(erfinv, kopt_sim::inverse_erf(x))
KOPT_SIM_BOTH_1(erfcinv, kopt_sim::inverse_erfc(x))
KOPT_SIM_BOTH_1(erfcx, kopt_sim::scaled_erfc(x))
KOPT_SIM_BOTH_1(normcdf, 0.5 * std::erfc(-x / kopt_sim::kRootOfTwo))
KOPT_SIM_BOTH_1(normcdfinv, -kopt_sim::kRootOfTwo * kopt_sim::inverse_erfc(2 * x))
KOPT_SIM_BOTH_1(cyl_bessel_i0, kopt_sim::bessel_i(0, x))
KOPT_SIM_BOTH_1(cyl_bessel_i1, kopt_sim::bessel_i(1, x))
KOPT_SIM_BOTH_1(rcbrt, 1.0 / std::cbrt(x))
KOPT_SIM_BOTH_1(sinpi, kopt_sim::sine_of_pi(x))
KOPT_SIM_BOTH_1(cospi, kopt_sim::cosine_of_pi(x))
#undef KOPT_SIM_BOTH_1

#define KOPT_SIM_NORM(NAME, T, PARAMETERS, VALUE)                                       \
  inline T NAME PARAMETERS { return static_cast<T>(VALUE); }                            \
  inline T r##NAME PARAMETERS { return static_cast<T>(1.0 / VALUE); }
KOPT_SIM_NORM(norm3d, double, (double a, double b, double c), kopt_sim::norm_of(a, b, c))
KOPT_SIM_NORM(norm3df, float, (float a, float b, float c), kopt_sim::norm_of(a, b, c))
KOPT_SIM_NORM(norm4d, double, (double a, double b, double c, double d),
              kopt_sim::norm_of(a, b, c, d))
KOPT_SIM_NORM(norm4df, float, (float a, float b, float c, float d), kopt_sim::norm_of(a, b, c, d))
KOPT_SIM_NORM(norm, double, (int count, const double* x), kopt_sim::norm_of_array(count, x))
KOPT_SIM_NORM(normf, float, (int count, const float* x), kopt_sim::norm_of_array(count, x))
#undef KOPT_SIM_NORM
inline float rhypotf(float a, float b) { return static_cast<float>(1.0 / kopt_sim::norm_of(a, b)); }
inline double rhypot(double a, double b) { return 1.0 / kopt_sim::norm_of(a, b); }
inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
inline void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
