// Loads and stores with a cache hint: the hint means nothing here, the access is checked as any.
#pragma once

#define KOPT_SIM_LOAD(NAME) \
  template <class T>        \
  inline T NAME(const T* p) { return *p; }
KOPT_SIM_LOAD(__ldg)
KOPT_SIM_LOAD(__ldca)
KOPT_SIM_LOAD(__ldcg)
KOPT_SIM_LOAD(__ldcs)
KOPT_SIM_LOAD(__ldcv)
KOPT_SIM_LOAD(__ldlu)
#undef KOPT_SIM_LOAD

#define KOPT_SIM_STORE(NAME) \
  template <class T>         \
  inline void NAME(T* p, std::common_type_t<T> value) { *p = value; }
KOPT_SIM_STORE(__stwb)
KOPT_SIM_STORE(__stcg)
KOPT_SIM_STORE(__stcs)
KOPT_SIM_STORE(__stwt)
#undef KOPT_SIM_STORE

inline std::size_t __cvta_generic_to_shared(const void* p) { return kopt_sim_to_shared(p); }
inline std::size_t __cvta_generic_to_global(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}
inline void* __cvta_shared_to_generic(std::size_t p) { return kopt_sim_from_shared(p); }
inline void* __cvta_global_to_generic(std::size_t p) { return reinterpret_cast<void*>(p); }
template <class T>
inline T* __builtin_kopt_assume_aligned(T* p, std::size_t) { return p; }

// CUDA 12 runtime calls that are device code: programmatic dependent launch. Kernels run one after
// another here, so the wait has nothing to wait for.
inline void cudaGridDependencySynchronize() {
  kopt_sim_cpu_body("cudaGridDependencySynchronize");
  kopt_sim_wait_for_producer();
}
inline void cudaTriggerProgrammaticLaunchCompletion() {
  kopt_sim_cpu_body("cudaTriggerProgrammaticLaunchCompletion");
}

// cuda_pipeline_primitives.h
using __pipeline_mbarrier_t = unsigned long long;
inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                    std::size_t zero_fill = 0) {
  kopt_sim_async_copy(shared, global, static_cast<unsigned>(bytes),
                      static_cast<unsigned>(bytes - zero_fill));
}
inline void __pipeline_commit() { kopt_sim_async_commit(); }
inline void __pipeline_wait_prior(std::size_t groups) {
  kopt_sim_async_wait(static_cast<unsigned>(groups));
}
