// Patterns to copy into a candidate: small device functions that compile as they stand and run on
// the simulator. BLOCK is a compile-time constant, as a tune value is. Source: written for kopt.
#pragma once

#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include <kopt/bulk_copy.cuh>
#include <kopt/cp_async.cuh>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

// Warp reduction by shuffles: every lane gets the sum of all 32 lanes, which must all call it.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

// Warp reduction to the maximum, e.g. of magnitudes for a quantization scale.
__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// Block reduction in two levels with one barrier: every thread gets the sum of all. THREADS is the
// block size, a multiple of 32. A second call needs a __syncthreads() before it: it writes the same
// shared memory.
template <int THREADS>
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float warp_sums[THREADS / 32];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < THREADS / 32; ++warp) total += warp_sums[warp];
  return total;
}

// Vectorized load: 8 bf16 by one 16-byte access, widened to fp32. `row` is 16-byte aligned.
__device__ __forceinline__ void load_8_bf16(const __nv_bfloat16* row, int vector,
                                            float (&values)[8]) {
  const uint4 packed = reinterpret_cast<const uint4*>(row)[vector];
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&packed);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// Vectorized store: 8 fp32 rounded to bf16, one 16-byte access that is not kept in the caches.
__device__ __forceinline__ void store_8_bf16(__nv_bfloat16* row, int vector,
                                             const float (&values)[8]) {
  uint4 packed;
  __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
  }
  kopt::store_streaming_16(reinterpret_cast<uint4*>(row) + vector, packed);
}

// Multistage cp.async pipeline (double buffering with STAGES = 2): loads of later steps are under
// way while one is computed. Each thread reads only what it copied itself, so that its own wait is
// enough; data of other threads needs a __syncthreads() after the wait and one before the stage is
// written again. `ring` has STAGES * THREADS elements of shared memory.
template <int STAGES, int THREADS, class Use>
__device__ __forceinline__ void for_each_vector(const uint4* row, int steps, uint4* ring, Use use) {
  const auto start_load = [&](int step) {
    if (step < steps) {
      kopt::cp_async<16>(&ring[step % STAGES * THREADS + threadIdx.x],
                         &row[step * THREADS + threadIdx.x]);
    }
    kopt::cp_async_commit_group();  // an empty group too: the count of groups stays simple
  };
  for (int step = 0; step < STAGES - 1; ++step) start_load(step);
  for (int step = 0; step < steps; ++step) {
    start_load(step + STAGES - 1);
    kopt::cp_async_wait_group<STAGES - 1>();  // the group of this step is in
    use(step, ring[step % STAGES * THREADS + threadIdx.x]);
  }
}

// A whole row into shared memory by one bulk copy (sm_90 on), completed on an mbarrier: the whole
// block calls it once per barrier. `bytes` is a multiple of 16, both addresses 16-byte aligned.
__device__ __forceinline__ void load_row(void* shared, const void* global, unsigned bytes,
                                         kopt::mbarrier_t* loaded) {
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(loaded, 1);
    kopt::fence_mbarrier_init();
    kopt::mbarrier_arrive_expect_tx(loaded, bytes);
    kopt::bulk_load(shared, global, bytes, loaded);
  }
  __syncthreads();  // the mbarrier exists before any thread waits for it
  kopt::mbarrier_wait_parity(loaded, 0);
}

// A row out of shared memory by one bulk copy (sm_90 on), after all threads have written it.
__device__ __forceinline__ void store_row(void* global, const void* shared, unsigned bytes) {
  kopt::fence_proxy_async();  // this thread's writes are visible to the copy
  __syncthreads();            // and so are everyone else's
  if (threadIdx.x == 0) {
    kopt::bulk_store(global, shared, bytes);
    kopt::bulk_commit_group();
    kopt::bulk_wait_group<0>();  // shared memory must outlive the copy
  }
}

// Last block done (split a row over several blocks without a grid barrier): returns true in all
// threads of the block that arrives last of `blocks`; it then reads what the others stored in
// scratch. `arrived` is scratch with `init: zero`; thread 0 stored the block's own partial result.
__device__ __forceinline__ bool is_last_block(int* arrived, int blocks) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    __threadfence();  // the partial result is visible before the arrival is
    is_last = atomicAdd(arrived, 1) == blocks - 1;
    __threadfence();  // the others' results are read after the last arrival
  }
  __syncthreads();  // every thread sees is_last
  return is_last;
}

// Programmatic dependent launch (`pdl: true`): static tensors such as weights are loaded before the
// wait, everything that the kernel before writes after it.
__device__ __forceinline__ float weight_before_wait(const float* weight, const float* produced) {
  const float w = weight[threadIdx.x];
  kopt::griddepcontrol_wait();
  const float result = w * produced[threadIdx.x];
  kopt::griddepcontrol_launch_dependents();
  return result;
}

// Grid-wide barrier: needs `cooperative: true` in the launch, and all blocks resident at once.
__device__ __forceinline__ void grid_barrier() { cooperative_groups::this_grid().sync(); }
