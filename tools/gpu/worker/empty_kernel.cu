// Kernels without a body: what a launch costs in itself. The second one is for launches with
// programmatic dependent launch; it triggers at once and waits, as early as any kernel could.

#include <kopt/griddepcontrol.cuh>

extern "C" __global__ void empty_kernel() {}

extern "C" __global__ void empty_dependent_kernel() {
#if __CUDA_ARCH__ >= 900
  kopt::griddepcontrol_launch_dependents();
  kopt::griddepcontrol_wait();
#endif
}
