// Programmatic dependent launch: a kernel launched with `pdl: true` may start before the kernel
// before it has ended, and must wait before it touches anything that kernel reads or writes.
//
// CPU body: the simulator runs launches one after another, and refuses what comes before the wait.
#pragma once

namespace kopt {

// Blocks until the grids this one depends on have ended and their writes are visible.
__device__ __forceinline__ void griddepcontrol_wait() {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("griddepcontrol_wait");
  kopt_sim_wait_for_producer();
#else
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next grid start; what it may rely on is only what it waits for.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("griddepcontrol_launch_dependents");
#else
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace kopt
