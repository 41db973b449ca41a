// Barriers, fences, votes, shuffles: CUDA's names over the runtime's exchange.
#pragma once

#define KOPT_SIM_LINE int line = __builtin_LINE()

inline void __syncthreads(KOPT_SIM_LINE) { kopt_sim_barrier(0, line); }
inline int __syncthreads_count(int predicate, KOPT_SIM_LINE) {
  return static_cast<int>(kopt_sim_barrier(predicate != 0, line));
}
inline int __syncthreads_or(int predicate, KOPT_SIM_LINE) {
  return kopt_sim_barrier(predicate != 0, line) != 0;
}
inline int __syncthreads_and(int predicate, KOPT_SIM_LINE) {
  return kopt_sim_barrier(predicate == 0, line) == 0;
}
inline void __barrier_sync(unsigned number, KOPT_SIM_LINE) {
  kopt_sim_named_barrier(number, 0, true, false, line);
}
inline void __barrier_sync_count(unsigned number, unsigned count, KOPT_SIM_LINE) {
  kopt_sim_named_barrier(number, count, true, false, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, KOPT_SIM_LINE) {
  kopt_sim_sync_warp(mask, line);
}
inline void __threadfence_block() { kopt_sim_fence(0); }
inline void __threadfence() { kopt_sim_fence(1); }
inline void __threadfence_system() { kopt_sim_fence(2); }
inline unsigned __activemask(KOPT_SIM_LINE) { return kopt_sim_active_mask(line); }
inline void __nanosleep(unsigned) { kopt_sim_yield(); }
[[noreturn]] inline void __trap(KOPT_SIM_LINE) { kopt_sim_trap(line); }
inline long long clock64() { return kopt_sim_clock(); }
inline clock_t clock() { return kopt_sim_clock(); }

namespace kopt_sim {

enum Exchange { kVote = 2, kMatch, kReduce };

template <class T>
inline std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8, "warp shuffles move at most 8 bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
inline T from_bits(std::uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// `source` is the lane to read, already limited to the caller's segment.
template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, int line) {
  return from_bits<T>(kopt_sim_shuffle(mask, to_bits(value), source & 31u, line));
}

template <class T, class Combine>
inline T reduce(unsigned mask, T value, Combine combine, int line) {
  std::uint64_t values[32];
  const unsigned lanes = kopt_sim_exchange(kReduce, mask, to_bits(value), line, values);
  T result = value;
  bool first = true;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1u)) continue;
    const T other = from_bits<T>(values[lane]);
    result = first ? other : combine(result, other);
    first = false;
  }
  return result;
}

}  // namespace kopt_sim

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, KOPT_SIM_LINE) {
  const unsigned lane = kopt_sim_lane(), w = static_cast<unsigned>(width);
  const unsigned base = lane & ~(w - 1u);
  return kopt_sim::shuffle(mask, value, base | (static_cast<unsigned>(source) & (w - 1u)), line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, KOPT_SIM_LINE) {
  const unsigned lane = kopt_sim_lane(), w = static_cast<unsigned>(width);
  const unsigned inner = lane & (w - 1u);
  return kopt_sim::shuffle(mask, value, inner < delta ? lane : lane - delta, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, KOPT_SIM_LINE) {
  const unsigned lane = kopt_sim_lane(), w = static_cast<unsigned>(width);
  const unsigned inner = lane & (w - 1u);
  return kopt_sim::shuffle(mask, value, inner + delta >= w ? lane : lane + delta, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, KOPT_SIM_LINE) {
  const unsigned lane = kopt_sim_lane(), w = static_cast<unsigned>(width);
  const unsigned source = lane ^ static_cast<unsigned>(bits);
  // Lanes of later segments are out of reach, those of earlier ones are not (CUDA C++ guide).
  return kopt_sim::shuffle(mask, value, source / w > lane / w ? lane : source, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, KOPT_SIM_LINE) {
  std::uint64_t values[32];
  const unsigned lanes =
      kopt_sim_exchange(kopt_sim::kVote, mask, predicate != 0, line, values);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1u) ballot |= static_cast<unsigned>(values[lane] & 1u) << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate, KOPT_SIM_LINE) {
  return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, KOPT_SIM_LINE) {
  return __ballot_sync(mask, predicate == 0, line) == 0;
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  const std::uint64_t mine = kopt_sim::to_bits(value);
  std::uint64_t values[32];
  const unsigned lanes = kopt_sim_exchange(kopt_sim::kMatch, mask, mine, line, values);
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((lanes >> lane & 1u) && values[lane] == mine) same |= 1u << lane;
  return same;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* same, KOPT_SIM_LINE) {
  const std::uint64_t mine = kopt_sim::to_bits(value);
  std::uint64_t values[32];
  const unsigned lanes = kopt_sim_exchange(kopt_sim::kMatch, mask, mine, line, values);
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((lanes >> lane & 1u) && values[lane] != mine) return static_cast<unsigned>(*same = 0);
  *same = 1;
  return lanes;
}
template <class T>
inline T __reduce_add_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  return kopt_sim::reduce(mask, value, [](T a, T b) { return kopt_sim::wrapping_sum(a, b); }, line);
}
template <class T>
inline T __reduce_min_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  return kopt_sim::reduce(mask, value, [](T a, T b) { return b < a ? b : a; }, line);
}
template <class T>
inline T __reduce_max_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  return kopt_sim::reduce(mask, value, [](T a, T b) { return a < b ? b : a; }, line);
}
template <class T>
inline T __reduce_and_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  return kopt_sim::reduce(mask, value, [](T a, T b) { return static_cast<T>(a & b); }, line);
}
template <class T>
inline T __reduce_or_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  return kopt_sim::reduce(mask, value, [](T a, T b) { return static_cast<T>(a | b); }, line);
}
template <class T>
inline T __reduce_xor_sync(unsigned mask, T value, KOPT_SIM_LINE) {
  return kopt_sim::reduce(mask, value, [](T a, T b) { return static_cast<T>(a ^ b); }, line);
}
