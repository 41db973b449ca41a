// cuda_awbarrier_primitives.h is PTX throughout and has no body for a CPU.
#pragma once
#error "the simulator has no <cuda_awbarrier_primitives.h>: use <kopt/mbarrier.cuh>"
