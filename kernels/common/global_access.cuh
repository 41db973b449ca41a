// Global loads and stores of 16 and 32 bytes, with cache hints.
//
// CPU bodies: plain copies of the same width, checked for alignment; hints mean nothing there.
#pragma once

namespace kopt {

// 32 bytes; one instruction on sm_100 and later, two elsewhere.
struct alignas(32) uint8x32_t {
  uint4 low, high;
};

// Data that is not needed again: past L1. Not `.nc`: ptxas may move such a load above
// griddepcontrol.wait, where the launch before has not yet written what it loads.
__device__ __forceinline__ uint4 load_streaming_16(const void* global) {
#if defined(KOPT_SIM)
  return *static_cast<const uint4*>(global);
#else
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(global)
               : "memory");
  return v;
#endif
}

// Written once and not read again by this kernel.
__device__ __forceinline__ void store_streaming_16(void* global, uint4 v) {
#if defined(KOPT_SIM)
  *static_cast<uint4*>(global) = v;
#else
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(global), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
#endif
}

__device__ __forceinline__ uint8x32_t load_32(const void* global) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("load_32");
  kopt_sim_require_aligned(global, 32, false);
  return *static_cast<const uint8x32_t*>(global);
#elif __CUDA_ARCH__ >= 1000
  uint8x32_t v;
  asm volatile("ld.global.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(v.low.x), "=r"(v.low.y), "=r"(v.low.z), "=r"(v.low.w), "=r"(v.high.x),
                 "=r"(v.high.y), "=r"(v.high.z), "=r"(v.high.w)
               : "l"(global)
               : "memory");
  return v;
#else
  const uint4* p = static_cast<const uint4*>(global);
  return {p[0], p[1]};
#endif
}

__device__ __forceinline__ void store_32(void* global, const uint8x32_t& v) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("store_32");
  kopt_sim_require_aligned(global, 32, true);
  *static_cast<uint8x32_t*>(global) = v;
#elif __CUDA_ARCH__ >= 1000
  asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(global),
               "r"(v.low.x), "r"(v.low.y), "r"(v.low.z), "r"(v.low.w), "r"(v.high.x),
               "r"(v.high.y), "r"(v.high.z), "r"(v.high.w)
               : "memory");
#else
  uint4* p = static_cast<uint4*>(global);
  p[0] = v.low;
  p[1] = v.high;
#endif
}

}  // namespace kopt
