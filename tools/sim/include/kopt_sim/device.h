// What a candidate sees in front of its source when g++ compiles it for the simulator: CUDA's own
// headers, then CPU bodies for the built-ins that nvcc provides. Precompiled once.
#pragma once

// The compiler makes calls of its own to these three; they must be checked like any access.
extern "C" {
void* memcpy(void*, const void*, __SIZE_TYPE__) noexcept __asm__("kopt_sim_memcpy");
void* memmove(void*, const void*, __SIZE_TYPE__) noexcept __asm__("kopt_sim_memmove");
void* memset(void*, int, __SIZE_TYPE__) noexcept __asm__("kopt_sim_memset");
}

// For CUDA's headers only: the candidate's own assertions are evaluated, as nvcc does.
#define NDEBUG

#define clock kopt_sim_unused_clock  // CUDA's is another
#include <time.h>
#undef clock
#include <cstddef>
#include <cstdint>
#include <cmath>
#include <cfloat>
#include <climits>
#include <cstring>
#include <limits>
#include <type_traits>

// CUDA's dim3 has constructors: reading its constants counts as an access of memory. The two that
// are of this type get a plain one.
#define blockDim kopt_sim_unused_block_dim
#define gridDim kopt_sim_unused_grid_dim
#include <cuda.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#undef blockDim
#undef gridDim
namespace kopt_sim {
struct Dimensions {
  unsigned x, y, z;
  operator dim3() const { return dim3(x, y, z); }
};
}  // namespace kopt_sim
extern "C" {
extern const kopt_sim::Dimensions blockDim, gridDim;
}

// Static shared memory is a static variable: one process runs one block at a time. `used` keeps the
// compiler from reasoning that nobody else changes it between two barriers.
#undef __shared__
#define __shared__ static __attribute__((used))
#define KOPT_SIM_EXTERN_SHARED __attribute__((aligned(16)))
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __maxnreg__
#define __maxnreg__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __block_size__
#define __block_size__(...)
// nvcc's: the author promises that it holds. One that does not is undefined on a GPU.
#define __builtin_assume(...) ((__VA_ARGS__) ? (void)0 : kopt_sim_trap(__LINE__))
#undef __noinline__
#define __noinline__ __attribute__((noinline))

#include <kopt_sim/runtime_interface.h>
#include <kopt_sim/integers.h>
#include <kopt_sim/synchronization.h>
#include <kopt_sim/packed_integers.h>
#include <kopt_sim/math.h>
#include <kopt_sim/special_functions.h>
#include <kopt_sim/directed_rounding.h>

// Structs that a call takes or returns by value are loaded and stored by the call itself, which
// the access hooks do not see. So everything is inlined before the hooks go in: the conversions of
// CUDA's headers (which mark them `unused` outside nvcc) and the candidate's device functions.
#define unused unused, always_inline
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_fp4.h>
#undef NDEBUG
#include <cassert>
#undef unused
#undef __device__
#define __device__ __attribute__((always_inline))

#include <kopt_sim/memory.h>
#include <kopt_sim/narrow_floats.h>
#include <kopt_sim/atomics.h>
#include <kopt_sim/ptx.h>
#include <kopt_sim/invoke.h>

// The candidate's own calls, by names that the compiler does not know: a copy of constant size would
// become a few moves after the hooks are in.
extern "C" {
void* kopt_sim_call_memcpy(void*, const void*, std::size_t) __asm__("kopt_sim_memcpy");
void* kopt_sim_call_memmove(void*, const void*, std::size_t) __asm__("kopt_sim_memmove");
void* kopt_sim_call_memset(void*, int, std::size_t) __asm__("kopt_sim_memset");
}
namespace std {
using ::kopt_sim_call_memcpy;
using ::kopt_sim_call_memmove;
using ::kopt_sim_call_memset;
}  // namespace std
#define memcpy kopt_sim_call_memcpy
#define memmove kopt_sim_call_memmove
#define memset kopt_sim_call_memset
