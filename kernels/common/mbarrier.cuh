// mbarrier: barriers in shared memory that count arrivals and bytes of asynchronous copies (sm_90
// on). A barrier is an 8-byte aligned uint64_t in shared memory.
//
// CPU body: the simulator keeps the barrier's state by its address.
#pragma once

namespace kopt {

using mbarrier_t = unsigned long long;

// One thread sets the arrival count; then fence_mbarrier_init and a block barrier, before use.
__device__ __forceinline__ void mbarrier_init(mbarrier_t* barrier, unsigned arrivals) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("mbarrier");
  kopt_sim_mbarrier_init(barrier, arrivals);
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals)
               : "memory");
#endif
}

// Makes initialised barriers visible to asynchronous copies.
__device__ __forceinline__ void fence_mbarrier_init() {
#if !defined(KOPT_SIM)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Orders ordinary shared-memory accesses before later asynchronous copies of the same memory.
__device__ __forceinline__ void fence_proxy_async() {
#if defined(KOPT_SIM)
  kopt_sim_proxy_fence();
#else
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ __forceinline__ void mbarrier_arrive(mbarrier_t* barrier) {
#if defined(KOPT_SIM)
  kopt_sim_mbarrier_arrive(barrier, 0);
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
#endif
}

// Arrives and adds `bytes` to what the phase waits for.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(mbarrier_t* barrier, unsigned bytes) {
#if defined(KOPT_SIM)
  kopt_sim_mbarrier_arrive(barrier, bytes);
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address),
               "r"(bytes)
               : "memory");
#endif
}

// Waits until the phase of `parity` (0 for the first, then 1, 0, ...) is complete.
#if defined(KOPT_SIM)
__device__ __forceinline__ void mbarrier_wait_parity(mbarrier_t* barrier, unsigned parity,
                                                     int line = __builtin_LINE()) {
  kopt_sim_mbarrier_wait(barrier, parity, line);
}
#else
__device__ __forceinline__ void mbarrier_wait_parity(mbarrier_t* barrier, unsigned parity) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.b32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  }
}
#endif

}  // namespace kopt
