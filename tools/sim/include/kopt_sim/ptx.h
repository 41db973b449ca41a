// What lowered PTX is made of (tools/sim/ptx): registers as bits, and instructions that have no
// name in CUDA C++. Source of what they do: the PTX ISA.
#pragma once

#include "matrix_code.h"

namespace kopt_sim {

template <class T>
__forceinline__ std::uint64_t ptx_bits(T value) {
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
__forceinline__ T ptx_as(std::uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
template <>
__forceinline__ bool ptx_as<bool>(std::uint64_t bits) {
  return bits != 0;
}

// Operands of a statement by their constraint; the widths are those that nvcc asks for.
template <class T>
__forceinline__ std::uint64_t ptx_in_integer(T value) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<std::uintptr_t>(value);
  else return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
template <class T>
__forceinline__ std::uint64_t ptx_in_r(T value) {
  static_assert(sizeof(T) <= 4 && !std::is_floating_point_v<T>, "\"r\" takes 32-bit integers");
  return static_cast<std::uint32_t>(ptx_in_integer(value));
}
template <class T>
__forceinline__ std::uint64_t ptx_in_h(T value) {
  static_assert(sizeof(T) <= 2 && !std::is_floating_point_v<T>, "\"h\" takes 16-bit integers");
  return static_cast<std::uint16_t>(ptx_in_integer(value));
}
template <class T>
__forceinline__ std::uint64_t ptx_in_l(T value) {
  static_assert(sizeof(T) == 8 && !std::is_floating_point_v<T>, "\"l\" takes 64 bits");
  return ptx_in_integer(value);
}
template <class T>
__forceinline__ std::uint64_t ptx_in_n(T value) {
  return ptx_in_integer(value);
}
__forceinline__ std::uint64_t ptx_in_f(float value) { return ptx_bits(value); }
__forceinline__ std::uint64_t ptx_in_d(double value) { return ptx_bits(value); }

template <class T>
__forceinline__ void ptx_out_l(T& place, std::uint64_t bits) {
  static_assert(sizeof(T) == 8, "\"=l\" sets 64 bits");
  place = ptx_as<T>(bits);
}
template <class T>
__forceinline__ void ptx_out_r(T& place, std::uint64_t bits) {
  static_assert(std::is_integral_v<T> && sizeof(T) <= 4, "\"=r\" sets a 32-bit integer");
  place = static_cast<T>(static_cast<std::uint32_t>(bits));
}
template <class T>
__forceinline__ void ptx_out_h(T& place, std::uint64_t bits) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 2, "\"=h\" sets a 16-bit integer");
  place = static_cast<T>(static_cast<std::uint16_t>(bits));
}
__forceinline__ void ptx_out_f(float& place, std::uint64_t bits) { place = ptx_as<float>(bits); }
__forceinline__ void ptx_out_d(double& place, std::uint64_t bits) { place = ptx_as<double>(bits); }

// Loads and stores of up to 32 bytes in one access, as the instruction makes.
template <unsigned Bytes>
struct PtxVector {
  alignas(8) unsigned char bytes[Bytes];
  template <class T>
  T get(unsigned index) const {
    T value;
    __builtin_memcpy(&value, bytes + index * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void set(unsigned index, T value) {
    __builtin_memcpy(bytes + index * sizeof(T), &value, sizeof(T));
  }
};
template <unsigned Bytes>
using PtxAccess = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t,
                       std::conditional_t<Bytes == 4, std::uint32_t,
                                          std::conditional_t<Bytes == 8, std::uint64_t, uint4>>>>;
template <unsigned Bytes>
__forceinline__ PtxVector<Bytes> ptx_load(const void* address) {
  PtxVector<Bytes> result;
  if constexpr (Bytes == 32) kopt_sim_require_aligned(address, 32, false);
  constexpr unsigned kStep = Bytes == 32 ? 16 : Bytes;
  for (unsigned done = 0; done < Bytes; done += kStep) {
    const auto part = static_cast<const PtxAccess<kStep>*>(address)[done / kStep];
    __builtin_memcpy(result.bytes + done, &part, kStep);
  }
  return result;
}
template <unsigned Bytes>
__forceinline__ void ptx_store(void* address, const PtxVector<Bytes>& value) {
  if constexpr (Bytes == 32) kopt_sim_require_aligned(address, 32, true);
  constexpr unsigned kStep = Bytes == 32 ? 16 : Bytes;
  for (unsigned done = 0; done < Bytes; done += kStep) {
    PtxAccess<kStep> part;
    __builtin_memcpy(&part, value.bytes + done, kStep);
    static_cast<PtxAccess<kStep>*>(address)[done / kStep] = part;
  }
}
// Volatile, relaxed, acquire and release accesses, of one element.
template <class T>
__forceinline__ T ptx_load_volatile(const void* address) {
  return *static_cast<const volatile T*>(address);
}
template <class T>
__forceinline__ void ptx_store_volatile(void* address, T value) {
  *static_cast<volatile T*>(address) = value;
}

__forceinline__ unsigned ptx_warp() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

template <class T>
__forceinline__ T ptx_multiply_high(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
  }
}

// Shifts by the width or more leave nothing, or the sign.
template <class T>
__forceinline__ T ptx_shift_left(T a, std::uint32_t count) {
  using Bits = std::make_unsigned_t<T>;
  return count >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<Bits>(a) << count);
}
template <class T>
__forceinline__ T ptx_shift_right(T a, std::uint32_t count) {
  constexpr std::uint32_t kLast = 8 * sizeof(T) - 1;
  if (count > kLast) return std::is_signed_v<T> ? static_cast<T>(a >> kLast) : T{0};
  return static_cast<T>(a >> count);
}

__forceinline__ std::uint32_t ptx_lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, unsigned table) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if (!(table >> row & 1u)) continue;
    result |= (row & 4u ? a : ~a) & (row & 2u ? b : ~b) & (row & 1u ? c : ~c);
  }
  return result;
}

template <class T>
__forceinline__ T ptx_bit_field(T a, std::uint32_t position, std::uint32_t length) {
  constexpr unsigned kLast = 8 * sizeof(T) - 1;
  const unsigned first = position & 0xffu, count = length & 0xffu;
  const bool sign = std::is_signed_v<T> && count != 0 &&
                    ((static_cast<std::make_unsigned_t<T>>(a) >>
                      (first + count - 1 < kLast ? first + count - 1 : kLast)) & 1u);
  T result = 0;
  for (unsigned i = 0; i <= kLast; ++i) {
    const bool bit = i < count && first + i <= kLast
                         ? (static_cast<std::make_unsigned_t<T>>(a) >> (first + i)) & 1u
                         : sign;
    if (bit) result |= static_cast<T>(std::make_unsigned_t<T>{1} << i);
  }
  return result;
}
template <class T>
__forceinline__ T ptx_insert(T field, T into, std::uint32_t position, std::uint32_t length) {
  T result = into;
  for (unsigned i = 0; i < (length & 0xffu); ++i) {
    const unsigned place = (position & 0xffu) + i;
    if (place >= 8 * sizeof(T)) break;
    const T mask = static_cast<T>(T{1} << place);
    result = (field >> i) & 1u ? static_cast<T>(result | mask) : static_cast<T>(result & ~mask);
  }
  return result;
}

// To TF32, the nearest; a tie goes away from zero.
__forceinline__ std::uint32_t ptx_tf32(float x) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & ~0x1fffu;
}

// shfl.sync: what `mode` (i, u, d, b) reads, and whether it lies within the segment that `c` says.
struct PtxShuffled {
  std::uint32_t value;
  bool is_within;
};
__forceinline__ PtxShuffled ptx_shuffle(char mode, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                               unsigned mask, int line = __builtin_LINE()) {
  const int lane = static_cast<int>(kopt_sim_lane()), by = static_cast<int>(b & 31u);
  const int segment = static_cast<int>(c >> 8 & 31u), clamp = static_cast<int>(c & 31u);
  const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  int from = 0;
  bool within = true;
  switch (mode) {
    case 'u': from = lane - by; within = from >= last; break;
    case 'd': from = lane + by; within = from <= last; break;
    case 'b': from = lane ^ by; within = from <= last; break;
    default: from = first | (by & ~segment); within = from <= last;
  }
  const unsigned source = static_cast<unsigned>(within ? from : lane);
  return {static_cast<std::uint32_t>(kopt_sim_shuffle(mask, a, source, line)), within};
}

// Registers of a matrix instruction, the first one lowest.
template <class... Registers>
__forceinline__ unsigned __int128 ptx_joined(Registers... registers) {
  unsigned __int128 joined = 0;
  unsigned place = 0;
  ((joined |= static_cast<unsigned __int128>(registers) << place, place += 8 * sizeof registers),
   ...);
  return joined;
}
template <class T>
__forceinline__ T ptx_part(unsigned __int128 joined, unsigned number) {
  return static_cast<T>(joined >> 8 * sizeof(T) * number);
}

__forceinline__ unsigned ptx_leader(unsigned mask, int line = __builtin_LINE()) {
  return static_cast<unsigned>(__ffs(static_cast<int>(__ballot_sync(mask, 1, line)))) - 1u;
}

}  // namespace kopt_sim
