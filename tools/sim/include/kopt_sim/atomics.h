// Atomic read-modify-write operations: checked by the runtime, then done by the CPU's own atomics
// without instrumentation, since blocks run in several processes over shared buffers.
#pragma once

namespace kopt_sim {

template <class T>
using AtomicBits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

template <bool Reads, class T, class Change>
__attribute__((no_sanitize_thread, noinline)) T atomic_update(T* address, const Change& change) {
  using Bits = AtomicBits<T>;
  kopt_sim_atomic(address, sizeof(T), Reads, __builtin_return_address(0));
  Bits* bits = reinterpret_cast<Bits*>(address);
  Bits seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    const T old = bit_cast<T>(seen);
    const Bits next = bit_cast<Bits>(static_cast<T>(change(old)));
    if (__atomic_compare_exchange_n(bits, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
      return old;
  }
}

template <class T>
__forceinline__ void recheck(T* address, const T* expected) {
  kopt_sim_rechecks(address, sizeof(T), expected);
}

}  // namespace kopt_sim

// RECHECKS: that an earlier load found the operation needed does not change its outcome. READS: the result depends on what was there. Inlined, so that the caller is the candidate's line.
#define KOPT_SIM_ATOMIC(NAME, READS, RECHECKS, EXPRESSION)                             \
  template <class T>                                                                   \
  __forceinline__ T NAME(T* address, std::common_type_t<T> value) {                    \
    if (RECHECKS) kopt_sim::recheck<T>(address, nullptr);                              \
    return kopt_sim::atomic_update<READS>(address, [=](T old) { return EXPRESSION; }); \
  }                                                                                    \
  template <class T>                                                                   \
  __forceinline__ T NAME##_block(T* address, std::common_type_t<T> value) {            \
    return NAME(address, value);                                                       \
  }                                                                                    \
  template <class T>                                                                   \
  __forceinline__ T NAME##_system(T* address, std::common_type_t<T> value) {           \
    return NAME(address, value);                                                       \
  }
KOPT_SIM_ATOMIC(atomicAdd, true, false, kopt_sim::wrapping_sum<T>(old, value))
KOPT_SIM_ATOMIC(atomicSub, true, false, kopt_sim::wrapping_difference<T>(old, value))
KOPT_SIM_ATOMIC(atomicExch, false, false, value)
KOPT_SIM_ATOMIC(atomicMin, true, true, value < old ? value : old)
KOPT_SIM_ATOMIC(atomicMax, true, true, old < value ? value : old)
KOPT_SIM_ATOMIC(atomicAnd, true, true, old & value)
KOPT_SIM_ATOMIC(atomicOr, true, true, old | value)
KOPT_SIM_ATOMIC(atomicXor, true, false, old ^ value)
KOPT_SIM_ATOMIC(atomicInc, true, false, old >= value ? 0 : old + 1)
KOPT_SIM_ATOMIC(atomicDec, true, false, old == 0 || old > value ? value : old - 1)
#undef KOPT_SIM_ATOMIC

template <class T>
__forceinline__ T atomicCAS(T* address, std::common_type_t<T> expected,
                            std::common_type_t<T> desired) {
  const T sought = expected;
  kopt_sim::recheck(address, &sought);
  return kopt_sim::atomic_update<true>(
      address, [=](T old) { return old == expected ? desired : old; });
}
template <class T>
__forceinline__ T atomicCAS_block(T* address, std::common_type_t<T> expected,
                                  std::common_type_t<T> desired) {
  return atomicCAS(address, expected, desired);
}
template <class T>
__forceinline__ T atomicCAS_system(T* address, std::common_type_t<T> expected,
                                   std::common_type_t<T> desired) {
  return atomicCAS(address, expected, desired);
}

// Vectors of floats: each element by itself, as the hardware does.
__forceinline__ float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
__forceinline__ float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
          atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}
