// Integers packed into a word, and what DPX offers: sums followed by minima and maxima.
#pragma once

namespace kopt_sim {

// The lane `index` of Bits bits, as a signed or unsigned number.
template <int Bits, bool Signed>
inline int lane(unsigned word, int index) {
  const unsigned raw = word >> (index * Bits) & ((1u << Bits) - 1u);
  return Signed && (raw >> (Bits - 1)) != 0 ? static_cast<int>(raw) - (1 << Bits)
                                            : static_cast<int>(raw);
}
template <int Bits, bool Signed, class Function>
inline unsigned each_lane(unsigned a, unsigned b, Function function) {
  unsigned r = 0;
  for (int i = 0; i < 32 / Bits; ++i) {
    const int value = function(lane<Bits, Signed>(a, i), lane<Bits, Signed>(b, i));
    r |= (static_cast<unsigned>(value) & ((1u << Bits) - 1u)) << (i * Bits);
  }
  return r;
}
template <int Bits, bool Signed, class Function>
inline unsigned lane_sum(unsigned a, unsigned b, Function function) {
  unsigned total = 0;
  for (int i = 0; i < 32 / Bits; ++i)
    total += static_cast<unsigned>(function(lane<Bits, Signed>(a, i), lane<Bits, Signed>(b, i)));
  return total;
}
template <int Bits, bool Signed>
inline int clamped(int x) {
  constexpr int kHighest = Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
  constexpr int kLowest = Signed ? -(1 << (Bits - 1)) : 0;
  return x > kHighest ? kHighest : x < kLowest ? kLowest : x;
}
}  // namespace kopt_sim

#define KOPT_SIM_PACKED(NAME, BITS, SIGNED, EXPRESSION)                                      \
  inline unsigned NAME(unsigned x, unsigned y) {                                             \
    return kopt_sim::each_lane<BITS, SIGNED>(x, y, [](int a, int b) { return EXPRESSION; }); \
  }
#define KOPT_SIM_PACKED_ONE(NAME, BITS, EXPRESSION)                                        \
  inline unsigned NAME(unsigned x) {                                                       \
    return kopt_sim::each_lane<BITS, true>(x, x, [](int a, int) { return EXPRESSION; });   \
  }
#define KOPT_SIM_PACKED_SUM(NAME, BITS, SIGNED)                                               \
  inline unsigned NAME(unsigned x, unsigned y) {                                              \
    return kopt_sim::lane_sum<BITS, SIGNED>(x, y,                                             \
                                            [](int a, int b) { return a > b ? a - b : b - a; }); \
  }
#define KOPT_SIM_PACKED_ORDER(NAME, N, BITS, SIGNED, COMPARISON)          \
  KOPT_SIM_PACKED(__vcmp##NAME##N, BITS, SIGNED, COMPARISON ? -1 : 0)     \
  KOPT_SIM_PACKED(__vset##NAME##N, BITS, SIGNED, COMPARISON ? 1 : 0)
#define KOPT_SIM_PACKED_ALL(N, BITS)                                                      \
  KOPT_SIM_PACKED(__vadd##N, BITS, true, a + b)                                           \
  KOPT_SIM_PACKED(__vsub##N, BITS, true, a - b)                                           \
  KOPT_SIM_PACKED(__vaddss##N, BITS, true, (kopt_sim::clamped<BITS, true>(a + b)))        \
  KOPT_SIM_PACKED(__vsubss##N, BITS, true, (kopt_sim::clamped<BITS, true>(a - b)))        \
  KOPT_SIM_PACKED(__vaddus##N, BITS, false, (kopt_sim::clamped<BITS, false>(a + b)))      \
  KOPT_SIM_PACKED(__vsubus##N, BITS, false, (kopt_sim::clamped<BITS, false>(a - b)))      \
  KOPT_SIM_PACKED(__vabsdiffs##N, BITS, true, a > b ? a - b : b - a)                      \
  KOPT_SIM_PACKED(__vabsdiffu##N, BITS, false, a > b ? a - b : b - a)                     \
  KOPT_SIM_PACKED(__vavgu##N, BITS, false, (a + b + 1) / 2)                               \
  KOPT_SIM_PACKED(__vhaddu##N, BITS, false, (a + b) / 2)                                  \
  KOPT_SIM_PACKED(__vmaxs##N, BITS, true, a > b ? a : b)                                  \
  KOPT_SIM_PACKED(__vmins##N, BITS, true, a < b ? a : b)                                  \
  KOPT_SIM_PACKED(__vmaxu##N, BITS, false, a > b ? a : b)                                 \
  KOPT_SIM_PACKED(__vminu##N, BITS, false, a < b ? a : b)                                 \
  KOPT_SIM_PACKED_ONE(__vabs##N, BITS, a < 0 ? -a : a)                                    \
  KOPT_SIM_PACKED_ONE(__vneg##N, BITS, -a)                                                \
  KOPT_SIM_PACKED_ONE(__vabsss##N, BITS, (kopt_sim::clamped<BITS, true>(a < 0 ? -a : a))) \
  KOPT_SIM_PACKED_ONE(__vnegss##N, BITS, (kopt_sim::clamped<BITS, true>(-a)))             \
  KOPT_SIM_PACKED_SUM(__vsads##N, BITS, true)                                             \
  KOPT_SIM_PACKED_SUM(__vsadu##N, BITS, false)                                            \
  KOPT_SIM_PACKED_ORDER(eq, N, BITS, false, a == b)                                       \
  KOPT_SIM_PACKED_ORDER(ne, N, BITS, false, a != b)                                       \
  KOPT_SIM_PACKED_ORDER(ges, N, BITS, true, a >= b)                                       \
  KOPT_SIM_PACKED_ORDER(gts, N, BITS, true, a > b)                                        \
  KOPT_SIM_PACKED_ORDER(les, N, BITS, true, a <= b)                                       \
  KOPT_SIM_PACKED_ORDER(lts, N, BITS, true, a < b)                                        \
  KOPT_SIM_PACKED_ORDER(geu, N, BITS, false, a >= b)                                      \
  KOPT_SIM_PACKED_ORDER(gtu, N, BITS, false, a > b)                                       \
  KOPT_SIM_PACKED_ORDER(leu, N, BITS, false, a <= b)                                      \
  KOPT_SIM_PACKED_ORDER(ltu, N, BITS, false, a < b)
KOPT_SIM_PACKED_ALL(2, 16)
KOPT_SIM_PACKED_ALL(4, 8)
#undef KOPT_SIM_PACKED_ALL
#undef KOPT_SIM_PACKED_ORDER
#undef KOPT_SIM_PACKED_SUM
#undef KOPT_SIM_PACKED_ONE
#undef KOPT_SIM_PACKED

namespace kopt_sim {
template <class T>
inline T larger(T a, T b) { return a < b ? b : a; }
template <class T>
inline T smaller(T a, T b) { return b < a ? b : a; }
template <bool Signed, class Function>
inline unsigned each_half(unsigned a, unsigned b, unsigned c, Function function) {
  unsigned r = 0;
  for (int i = 0; i < 2; ++i) {
    const int value = function(lane<16, Signed>(a, i), lane<16, Signed>(b, i), lane<16, Signed>(c, i));
    r |= (static_cast<unsigned>(value) & 0xffffu) << (16 * i);
  }
  return r;
}
// A sum of 16 bits wraps.
template <bool Signed>
inline int wrapped_half(int x) { return lane<16, Signed>(static_cast<unsigned>(x), 0); }
}  // namespace kopt_sim

#define KOPT_SIM_DPX(OPERATION, CHOOSE)                                                            \
  inline int __viadd##OPERATION##_s32(int a, int b, int c) {                                       \
    return CHOOSE(kopt_sim::wrapping_sum(a, b), c);                                                \
  }                                                                                                \
  inline unsigned __viadd##OPERATION##_u32(unsigned a, unsigned b, unsigned c) {                   \
    return CHOOSE(a + b, c);                                                                       \
  }                                                                                                \
  inline int __viadd##OPERATION##_s32_relu(int a, int b, int c) {                                  \
    return kopt_sim::larger(CHOOSE(kopt_sim::wrapping_sum(a, b), c), 0);                           \
  }                                                                                                \
  inline unsigned __viadd##OPERATION##_s16x2(unsigned a, unsigned b, unsigned c) {                 \
    return kopt_sim::each_half<true>(a, b, c, [](int x, int y, int z) {                            \
      return CHOOSE(kopt_sim::wrapped_half<true>(x + y), z);                                       \
    });                                                                                            \
  }                                                                                                \
  inline unsigned __viadd##OPERATION##_u16x2(unsigned a, unsigned b, unsigned c) {                 \
    return kopt_sim::each_half<false>(a, b, c, [](int x, int y, int z) {                           \
      return CHOOSE(kopt_sim::wrapped_half<false>(x + y), z);                                      \
    });                                                                                            \
  }                                                                                                \
  inline unsigned __viadd##OPERATION##_s16x2_relu(unsigned a, unsigned b, unsigned c) {            \
    return kopt_sim::each_half<true>(a, b, c, [](int x, int y, int z) {                            \
      return kopt_sim::larger(CHOOSE(kopt_sim::wrapped_half<true>(x + y), z), 0);                  \
    });                                                                                            \
  }                                                                                                \
  inline int __vi##OPERATION##3_s32(int a, int b, int c) { return CHOOSE(CHOOSE(a, b), c); }       \
  inline unsigned __vi##OPERATION##3_u32(unsigned a, unsigned b, unsigned c) {                     \
    return CHOOSE(CHOOSE(a, b), c);                                                                \
  }                                                                                                \
  inline int __vi##OPERATION##3_s32_relu(int a, int b, int c) {                                    \
    return kopt_sim::larger(CHOOSE(CHOOSE(a, b), c), 0);                                           \
  }                                                                                                \
  inline int __vi##OPERATION##_s32_relu(int a, int b) {                                            \
    return kopt_sim::larger(CHOOSE(a, b), 0);                                                      \
  }                                                                                                \
  inline unsigned __vi##OPERATION##3_s16x2(unsigned a, unsigned b, unsigned c) {                   \
    return kopt_sim::each_half<true>(                                                              \
        a, b, c, [](int x, int y, int z) { return CHOOSE(CHOOSE(x, y), z); });                     \
  }                                                                                                \
  inline unsigned __vi##OPERATION##3_u16x2(unsigned a, unsigned b, unsigned c) {                   \
    return kopt_sim::each_half<false>(                                                             \
        a, b, c, [](int x, int y, int z) { return CHOOSE(CHOOSE(x, y), z); });                     \
  }                                                                                                \
  inline unsigned __vi##OPERATION##3_s16x2_relu(unsigned a, unsigned b, unsigned c) {              \
    return kopt_sim::each_half<true>(a, b, c, [](int x, int y, int z) {                            \
      return kopt_sim::larger(CHOOSE(CHOOSE(x, y), z), 0);                                         \
    });                                                                                            \
  }                                                                                                \
  inline unsigned __vi##OPERATION##_s16x2_relu(unsigned a, unsigned b) {                           \
    return kopt_sim::each_half<true>(                                                              \
        a, b, b, [](int x, int y, int) { return kopt_sim::larger(CHOOSE(x, y), 0); });             \
  }
KOPT_SIM_DPX(max, kopt_sim::larger)
KOPT_SIM_DPX(min, kopt_sim::smaller)
#undef KOPT_SIM_DPX

// `first`: whether the choice is the first operand, equal ones counting as the first.
#define KOPT_SIM_DPX_FIRST(OPERATION, COMPARISON)                                              \
  inline int __vib##OPERATION##_s32(int a, int b, bool* first) {                               \
    *first = a COMPARISON b;                                                                   \
    return *first ? a : b;                                                                     \
  }                                                                                            \
  inline unsigned __vib##OPERATION##_u32(unsigned a, unsigned b, bool* first) {                \
    *first = a COMPARISON b;                                                                   \
    return *first ? a : b;                                                                     \
  }                                                                                            \
  inline unsigned __vib##OPERATION##_s16x2(unsigned a, unsigned b, bool* high, bool* low) {    \
    *high = kopt_sim::lane<16, true>(a, 1) COMPARISON kopt_sim::lane<16, true>(b, 1);          \
    *low = kopt_sim::lane<16, true>(a, 0) COMPARISON kopt_sim::lane<16, true>(b, 0);           \
    return ((*high ? a : b) & 0xffff0000u) | ((*low ? a : b) & 0xffffu);                       \
  }                                                                                            \
  inline unsigned __vib##OPERATION##_u16x2(unsigned a, unsigned b, bool* high, bool* low) {    \
    *high = a >> 16 COMPARISON b >> 16;                                                        \
    *low = (a & 0xffffu) COMPARISON (b & 0xffffu);                                             \
    return ((*high ? a : b) & 0xffff0000u) | ((*low ? a : b) & 0xffffu);                       \
  }
KOPT_SIM_DPX_FIRST(max, >=)
KOPT_SIM_DPX_FIRST(min, <=)
#undef KOPT_SIM_DPX_FIRST
