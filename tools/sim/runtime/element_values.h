// Elements of matrices as doubles, and sums as the bits of their type.
#pragma once

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "matrix_exchange.h"

namespace kopt_sim {

inline unsigned bits_of(Element element) {
  switch (element) {
    case Element::kF16:
    case Element::kBf16: return 16;
    case Element::kTf32: return 32;
    case Element::kE2m3:
    case Element::kE3m2: return 6;
    case Element::kE2m1: return 4;
    default: return 8;
  }
}

inline float as_float(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline double half_value(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
  if (rest >= 0x1fu << 23) return as_float(sign | rest | 0x7f800000u);
  return as_float(sign | rest) * 0x1p112;
}

inline double e4m3_value(std::uint32_t bits) {
  const std::uint32_t rest = bits & 0x7fu;
  const double sign = bits & 0x80u ? -1.0 : 1.0;
  if (rest == 0x7fu) return sign * NAN;
  return sign * as_float(rest << 20) * 0x1p120;
}

// Of 4 or 6 bits, which have neither infinities nor NaN; `fraction`: its bits.
inline double narrow_value(std::uint32_t bits, unsigned width, unsigned fraction, int bias) {
  const std::uint32_t rest = bits & ((1u << (width - 1)) - 1);
  const auto exponent = static_cast<int>(rest >> fraction);
  const std::uint32_t steps = (rest & ((1u << fraction) - 1)) | (exponent == 0 ? 0 : 1u << fraction);
  const double size = std::ldexp(steps, (exponent == 0 ? 1 : exponent) - bias - static_cast<int>(fraction));
  return bits >> (width - 1) & 1u ? -size : size;
}

inline double value_of(Element element, std::uint32_t bits) {
  switch (element) {
    case Element::kF16: return half_value(bits);
    case Element::kBf16: return as_float(bits << 16);
    case Element::kTf32: return as_float(bits & ~0x1fffu);
    case Element::kE4m3: return e4m3_value(bits);
    case Element::kE5m2: return half_value(bits << 8);
    case Element::kE2m3: return narrow_value(bits, 6, 3, 1);
    case Element::kE3m2: return narrow_value(bits, 6, 2, 3);
    case Element::kE2m1: return narrow_value(bits, 4, 1, 1);
    case Element::kS8: return static_cast<std::int8_t>(bits);
    default: return static_cast<std::uint8_t>(bits);
  }
}

// What a sum holds.
inline double sum_value(Element element, std::uint32_t bits) {
  switch (element) {
    case Element::kF16: return half_value(bits & 0xffffu);
    case Element::kF32: return as_float(bits);
    default: return static_cast<std::int32_t>(bits);
  }
}

// The nearest half; a tie goes to the even one.
inline std::uint32_t half_bits(double value) {
  if (std::isnan(value)) return 0x7fffu;
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0;
  const double size = std::fabs(value);
  if (size >= 65520.0) return sign | 0x7c00u;
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const double steps = std::nearbyint(std::ldexp(size, 10 - exponent));
  return sign | ((static_cast<std::uint32_t>(exponent + 14) << 10) +
                 static_cast<std::uint32_t>(steps));
}

// The one rounding of a sum: to the nearest, of integers by wrapping or to the nearest bound.
inline std::uint32_t sum_bits(double value, Element element, bool saturates) {
  if (element == Element::kF16) return half_bits(value);
  if (element == Element::kF32) {
    if (std::isnan(value)) return 0x7fffffffu;
    const float rounded = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    return bits;
  }
  if (saturates) value = std::fmin(std::fmax(value, INT32_MIN), INT32_MAX);
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
}

inline std::uint32_t word(Quad registers, unsigned number) {
  return static_cast<std::uint32_t>(registers >> 32 * number);
}

// Calls take(bits, row or column, k) for each element of a lane's registers of A or B.
template <class Take>
void each_element(Quad registers, unsigned count, unsigned bits, unsigned lane, bool goes_down,
                  Take take) {
  const unsigned each = 32 / bits, mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned r = 0; r < count; ++r) {
    const unsigned line = lane / 4 + (goes_down ? r % 2 * 8 : 0);
    const unsigned along = goes_down ? r / 2 : r;
    for (unsigned i = 0; i < each; ++i)
      take(word(registers, r) >> bits * i & mask, line, (along * 4 + lane % 4) * each + i);
  }
}

}  // namespace kopt_sim
