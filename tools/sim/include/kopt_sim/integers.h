// Conversions and bit operations on integers.
#pragma once

namespace kopt_sim {
template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
// Integers of the hardware's own additions wrap.
template <class T>
__forceinline__ T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return static_cast<T>(a + b);
  }
}
template <class T>
__forceinline__ T wrapping_difference(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  } else {
    return static_cast<T>(a - b);
  }
}
// Float to integer saturates on the device; NaN gives 0 in 32 bits, the highest bit in 64.
// Source: PTX ISA, cvt.
template <class Int>
inline Int saturating(double x) {
  if (x != x) return sizeof(Int) == 8 ? static_cast<Int>(1ull << 63) : 0;
  constexpr double lowest = static_cast<double>(std::numeric_limits<Int>::min());
  constexpr double highest = static_cast<double>(std::numeric_limits<Int>::max());
  if (x <= lowest) return std::numeric_limits<Int>::min();
  if (x >= highest) return std::numeric_limits<Int>::max();
  return static_cast<Int>(x);
}
}  // namespace kopt_sim

inline unsigned __float_as_uint(float x) { return kopt_sim::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return kopt_sim::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return kopt_sim::bit_cast<float>(x); }
inline float __int_as_float(int x) { return kopt_sim::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return kopt_sim::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return kopt_sim::bit_cast<double>(x); }

#define KOPT_SIM_FLOAT_TO(NAME, INT)                                                      \
  inline INT __float2##NAME##_rn(float x) { return kopt_sim::saturating<INT>(rint(x)); }  \
  inline INT __float2##NAME##_rz(float x) { return kopt_sim::saturating<INT>(trunc(x)); } \
  inline INT __float2##NAME##_ru(float x) { return kopt_sim::saturating<INT>(ceil(x)); }  \
  inline INT __float2##NAME##_rd(float x) { return kopt_sim::saturating<INT>(floor(x)); }
KOPT_SIM_FLOAT_TO(int, int)
KOPT_SIM_FLOAT_TO(uint, unsigned)
KOPT_SIM_FLOAT_TO(ll, long long)
KOPT_SIM_FLOAT_TO(ull, unsigned long long)
#undef KOPT_SIM_FLOAT_TO
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
// From a double NaN gives the highest bit in 32 bits, too.
#define KOPT_SIM_DOUBLE_TO_ONE(NAME, INT, HOW, WHOLE)                                     \
  inline INT __double2##NAME##_##HOW(double x) {                                          \
    return x != x ? static_cast<INT>(1ull << (8 * sizeof(INT) - 1))                       \
                  : kopt_sim::saturating<INT>(WHOLE(x));                                  \
  }
#define KOPT_SIM_DOUBLE_TO(NAME, INT)                                                     \
  KOPT_SIM_DOUBLE_TO_ONE(NAME, INT, rn, rint)                                             \
  KOPT_SIM_DOUBLE_TO_ONE(NAME, INT, rz, trunc)                                            \
  KOPT_SIM_DOUBLE_TO_ONE(NAME, INT, ru, ceil)                                             \
  KOPT_SIM_DOUBLE_TO_ONE(NAME, INT, rd, floor)
KOPT_SIM_DOUBLE_TO(int, int)
KOPT_SIM_DOUBLE_TO(uint, unsigned)
KOPT_SIM_DOUBLE_TO(ll, long long)
KOPT_SIM_DOUBLE_TO(ull, unsigned long long)
#undef KOPT_SIM_DOUBLE_TO
#undef KOPT_SIM_DOUBLE_TO_ONE
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return kopt_sim::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                                    static_cast<unsigned>(low));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int bit = 0; bit < 32; ++bit) r |= (x >> bit & 1u) << (31 - bit);
  return r;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
// The position of the n-th set bit from `base` on, downwards for a negative n.
inline unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return mask >> (base & 31u) & 1u ? base : 0xffffffffu;
  const int step = n > 0 ? 1 : -1;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step)
    if ((mask >> bit & 1u) != 0 && (n -= step) == 0) return static_cast<unsigned>(bit);
  return 0xffffffffu;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> (4 * i) & 0xfu;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7u))) & 0xffu;
    if (nibble & 8u) byte = byte & 0x80u ? 0xffu : 0u;  // replicate the sign
    r |= byte << (8 * i);
  }
  return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  const unsigned s = shift & 31u;
  return s == 0 ? hi : hi << s | lo >> (32 - s);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  const unsigned s = shift & 31u;
  return s == 0 ? lo : lo >> s | hi << (32 - s);
}
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}
inline int __mul24(int x, int y) {
  return static_cast<int>(static_cast<long long>((x << 8) >> 8) * ((y << 8) >> 8));
}
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
inline int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<long long>(x) * y >> 32);
}
inline unsigned __sad(int x, int y, unsigned z) {
  return z + (x > y ? static_cast<unsigned>(x) - y : static_cast<unsigned>(y) - x);
}
inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y) >> 1); }
inline int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1);
}
inline unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
}
inline unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}
inline long long llmin(long long x, long long y) { return x < y ? x : y; }
inline long long llmax(long long x, long long y) { return x < y ? y : x; }
inline unsigned umin(unsigned x, unsigned y) { return x < y ? x : y; }
inline unsigned umax(unsigned x, unsigned y) { return x < y ? y : x; }
inline unsigned long long ullmin(unsigned long long x, unsigned long long y) { return x < y ? x : y; }
inline unsigned long long ullmax(unsigned long long x, unsigned long long y) { return x < y ? y : x; }

inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c = kopt_sim::wrapping_sum(
        c, static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i)));
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xffu) * (b >> i & 0xffu);
  return c;
}
// Two halves of `a` times the lower or upper two bytes of `b`.
#define KOPT_SIM_DP2A(NAME, SHIFT)                                                           \
  inline int NAME(int a, int b, int c) {                                                     \
    for (int i = 0; i < 2; ++i)                                                              \
      c = kopt_sim::wrapping_sum(c, static_cast<short>(a >> (16 * i)) *                      \
                                        static_cast<signed char>(b >> (8 * i + SHIFT)));     \
    return c;                                                                                \
  }                                                                                          \
  inline unsigned NAME(unsigned a, unsigned b, unsigned c) {                                 \
    for (int i = 0; i < 2; ++i) c += (a >> (16 * i) & 0xffffu) * (b >> (8 * i + SHIFT) & 0xffu); \
    return c;                                                                                \
  }
KOPT_SIM_DP2A(__dp2a_lo, 0)
KOPT_SIM_DP2A(__dp2a_hi, 16)
#undef KOPT_SIM_DP2A
