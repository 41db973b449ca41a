// cp.async: copies from global to shared memory that do not pass through registers (sm_80 on).
//
// CPU body: the copy happens at the wait, as late as the hardware may do it, so that a read before
// the wait is found.
#pragma once

namespace kopt {

// Starts a copy of `Bytes` (4, 8 or 16); both addresses are multiples of `Bytes`. 16-byte copies
// bypass L1.
template <int Bytes>
__device__ __forceinline__ void cp_async(void* shared, const void* global) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("cp_async");
  kopt_sim_async_copy(shared, global, Bytes, Bytes);
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(global),
                 "n"(Bytes)
                 : "memory");
  }
#endif
}

// As cp_async<16>, but fills with zeros and reads nothing if `valid` is false.
__device__ __forceinline__ void cp_async_zfill_16(void* shared, const void* global, bool valid) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("cp_async_zfill_16");
  kopt_sim_async_copy(shared, global, 16, valid ? 16 : 0);
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(bytes)
               : "memory");
#endif
}

// Closes the group of the copies started since the last commit.
__device__ __forceinline__ void cp_async_commit_group() {
#if defined(KOPT_SIM)
  kopt_sim_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `GroupsLeft` of this thread's groups are still under way. Other threads of
// the block see the data only after a barrier.
template <int GroupsLeft>
__device__ __forceinline__ void cp_async_wait_group() {
#if defined(KOPT_SIM)
  kopt_sim_async_wait(GroupsLeft);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(GroupsLeft) : "memory");
#endif
}

}  // namespace kopt
