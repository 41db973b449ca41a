// What the blocks of a cluster tell one another without a fence (sm_90 on): a store into another
// block's shared memory that its mbarrier there counts, and the halves of the cluster barrier that
// order nothing.
//
// The barrier of cooperative_groups orders all memory, which costs half a microsecond on an H100;
// what is sent here is ordered by the mbarrier alone.
//
// CPU bodies: a value lands when a thread of its block waits for the mbarrier.
#pragma once

#include <kopt/mbarrier.cuh>

namespace kopt {

// Which block of its cluster this one is: 0 to size - 1.
__device__ __forceinline__ unsigned cluster_rank() {
#if defined(KOPT_SIM)
  return kopt_sim_cluster_rank();
#else
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#endif
}

// Together they say that all blocks of the cluster have started, and, after fence_mbarrier_init,
// that their mbarriers may be counted on. Every thread of the cluster does both, whole warps at
// once; no memory is ordered.
#if defined(KOPT_SIM)
__device__ __forceinline__ void cluster_arrive_relaxed(int line = __builtin_LINE()) {
  kopt_sim_cpu_body("cluster_arrive_relaxed");
  kopt_sim_cluster_arrive_relaxed(line);
}
__device__ __forceinline__ void cluster_wait(int line = __builtin_LINE()) {
  kopt_sim_cluster_wait(line);
}
#else
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
#endif

// Stores `value` to where block `rank` has `shared`, and takes 4 bytes from what `barrier` waits
// for there. Whoever has waited for that mbarrier sees the value. A block must not end before the
// values sent to it have come. A second exchange needs elements and an mbarrier of its own: a quick
// block's value may come while another one's first is on its way.
#if defined(KOPT_SIM)
__device__ __forceinline__ void st_async(float* shared, float value, mbarrier_t* barrier,
                                         unsigned rank, int line = __builtin_LINE()) {
  kopt_sim_cpu_body("st_async");
  kopt_sim_store_async(shared, __float_as_uint(value), barrier, rank, line);
}
#else
__device__ __forceinline__ void st_async(float* shared, float value, mbarrier_t* barrier,
                                         unsigned rank) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const unsigned counts = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "{\n\t.reg .b32 to, counts;\n\t"
      "mapa.shared::cluster.u32 to, %0, %3;\n\t"
      "mapa.shared::cluster.u32 counts, %2, %3;\n\t"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %1, [counts];\n\t}"
      :
      : "r"(to), "r"(__float_as_uint(value)), "r"(counts), "r"(rank)
      : "memory");
}
#endif

// As mbarrier_wait_parity, for what other blocks of the cluster have sent.
#if defined(KOPT_SIM)
__device__ __forceinline__ void mbarrier_wait_parity_cluster(mbarrier_t* barrier, unsigned parity,
                                                             int line = __builtin_LINE()) {
  kopt_sim_mbarrier_wait(barrier, parity, line);
}
#else
__device__ __forceinline__ void mbarrier_wait_parity_cluster(mbarrier_t* barrier, unsigned parity) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.b32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  }
}
#endif

}  // namespace kopt
