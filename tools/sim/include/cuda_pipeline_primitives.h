// cuda_pipeline_primitives.h for the simulator: kopt_sim/memory.h, which comes before every
// candidate, has these functions already. CUDA's own header is PTX.
#pragma once
