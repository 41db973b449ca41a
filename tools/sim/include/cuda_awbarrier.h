// cuda_awbarrier.h is PTX throughout and has no body for a CPU.
#pragma once
#error "the simulator has no <cuda_awbarrier.h>: use <kopt/mbarrier.cuh>"
