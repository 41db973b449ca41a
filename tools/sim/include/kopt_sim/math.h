// Floating-point intrinsics. The device's approximations (__expf, rsqrtf, ...) are computed more
// exactly here: results agree within the correctness gates, not bit for bit.
#pragma once

inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float exp10f(float x) noexcept { return powf(10.0f, x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float saturate(float x) { return __saturatef(x); }

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}

inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fmaf_ieee_rn(float x, float y, float z) { return fmaf(x, y, z); }
// volatile: a product and a sum that the source keeps apart must not be fused.
inline float __fadd_rn(float x, float y) { volatile float r = x + y; return r; }
inline float __fsub_rn(float x, float y) { volatile float r = x - y; return r; }
inline float __fmul_rn(float x, float y) { volatile float r = x * y; return r; }
inline double __dadd_rn(double x, double y) { volatile double r = x + y; return r; }
inline double __dmul_rn(double x, double y) { volatile double r = x * y; return r; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// CUDA has min and max for every arithmetic type; mixed types convert as usual.
template <class A, class B,
          class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
inline auto min(A a, B b) {
  using C = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<C>) return static_cast<C>(fmin(C(a), C(b)));
  else return C(b) < C(a) ? C(b) : C(a);
}
template <class A, class B,
          class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
inline auto max(A a, B b) {
  using C = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<C>) return static_cast<C>(fmax(C(a), C(b)));
  else return C(a) < C(b) ? C(b) : C(a);
}
