// Bulk asynchronous copies (sm_90 on): contiguous ones, and tiles of a tensor map (TMA).
//
// One thread starts a copy. Loads complete on an mbarrier; stores are waited for in groups.
// CPU bodies: a load happens when a thread waits for its barrier, a store at the wait of its group;
// tensor maps are the simulator's own (tools/sim/tensor_maps.py).
#pragma once

#include <kopt/mbarrier.cuh>

#if !defined(KOPT_SIM)
#include <cuda.h>
#endif

namespace kopt {

#if defined(KOPT_SIM)
namespace sim {

// tools/sim/tensor_maps.py writes it.
struct TensorMap {
  unsigned long long base;
  unsigned char rank, element_bytes, swizzle, fill_nan;
  unsigned char padding[4];
  unsigned extents[5];
  unsigned padding2;
  unsigned long long strides[5];
  unsigned box[5];
  unsigned element_strides[5];
};

// Shared-memory rows of a tile are 128 bytes or less wide; swizzling exchanges 16-byte chunks.
inline unsigned swizzled(unsigned offset, unsigned swizzle) {
  if (swizzle == 128) return offset ^ (offset >> 7 & 7u) << 4;
  if (swizzle == 64) return offset ^ (offset >> 7 & 3u) << 4;
  if (swizzle == 32) return offset ^ (offset >> 7 & 1u) << 4;
  return offset;
}

// Calls `copy(shared offset, global address, bytes, inside)` for each element of the tile at
// `start`, innermost coordinate first. The box counts what is traversed, of which every n-th element
// is taken; never along the innermost dimension (CUDA Driver API, cuTensorMapEncodeTiled).
template <class Copy>
inline void for_each_element(const TensorMap& map, const int* start, Copy copy) {
  unsigned total = 1, steps[5], counts[5];
  for (unsigned d = 0; d < map.rank; ++d) {
    steps[d] = d == 0 ? 1 : map.element_strides[d];
    counts[d] = (map.box[d] + steps[d] - 1) / steps[d];
    total *= counts[d];
  }
  const unsigned element = map.element_bytes;
  for (unsigned i = 0; i < total; ++i) {
    unsigned long long address = map.base;
    bool inside = true;
    unsigned rest = i;
    for (unsigned d = 0; d < map.rank; ++d) {
      const long long at = start[d] + static_cast<long long>(rest % counts[d]) * steps[d];
      rest /= counts[d];
      inside = inside && at >= 0 && at < map.extents[d];
      address += static_cast<unsigned long long>(at) * map.strides[d];
    }
    copy(swizzled(i * element, map.swizzle), address, element, inside);
  }
}

inline void load_tile(void* shared, const CUtensorMap* map, mbarrier_t* barrier,
                      const int* start) {
  kopt_sim_cpu_body("tma_load");
  const TensorMap& sim_map = *reinterpret_cast<const TensorMap*>(map);
  for_each_element(sim_map, start,
                   [=](unsigned offset, unsigned long long address, unsigned bytes, bool inside) {
                     kopt_sim_bulk_load(static_cast<char*>(shared) + offset,
                                        reinterpret_cast<const void*>(address), bytes,
                                        inside ? bytes : 0, barrier);
                   });
}

inline void store_tile(const CUtensorMap* map, const void* shared, const int* start) {
  kopt_sim_cpu_body("tma_store");
  const TensorMap& sim_map = *reinterpret_cast<const TensorMap*>(map);
  for_each_element(sim_map, start,
                   [=](unsigned offset, unsigned long long address, unsigned bytes, bool inside) {
                     if (!inside) return;
                     kopt_sim_bulk_store(reinterpret_cast<void*>(address),
                                         static_cast<const char*>(shared) + offset, bytes);
                   });
}

}  // namespace sim
#endif

// Starts a copy of `bytes` (a multiple of 16, both addresses too) that completes on `barrier`.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, unsigned bytes,
                                          mbarrier_t* barrier) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("bulk_load");
  kopt_sim_require_bulk(shared, global, bytes);
  kopt_sim_bulk_load(shared, global, bytes, bytes, barrier);
#else
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const unsigned on = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(global), "r"(bytes), "r"(on)
      : "memory");
#endif
}

// Starts a copy of `bytes` from shared to global memory, part of the open store group.
__device__ __forceinline__ void bulk_store(void* global, const void* shared, unsigned bytes) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("bulk_store");
  kopt_sim_require_bulk(global, shared, bytes);
  kopt_sim_bulk_store(global, shared, bytes);
#else
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(from), "r"(bytes)
               : "memory");
#endif
}

__device__ __forceinline__ void bulk_commit_group() {
#if defined(KOPT_SIM)
  kopt_sim_bulk_commit();
#else
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

// Waits until at most `GroupsLeft` store groups of this thread are under way; needed before the
// block ends or the shared memory is used again.
template <int GroupsLeft>
__device__ __forceinline__ void bulk_wait_group() {
#if defined(KOPT_SIM)
  kopt_sim_bulk_wait(GroupsLeft);
#else
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(GroupsLeft) : "memory");
#endif
}

// Loads the tile whose first element is at column `x` (and row `y`), in elements. `map` is a
// kernel parameter: const __grid_constant__ CUtensorMap. Shared memory is 128-byte aligned.
__device__ __forceinline__ void tma_load_1d(void* shared, const CUtensorMap* map,
                                            mbarrier_t* barrier, int x) {
#if defined(KOPT_SIM)
  const int start[] = {x};
  sim::load_tile(shared, map, barrier, start);
#else
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const unsigned on = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3}], [%2];" ::"r"(to),
      "l"(map), "r"(on), "r"(x)
      : "memory");
#endif
}

__device__ __forceinline__ void tma_load_2d(void* shared, const CUtensorMap* map,
                                            mbarrier_t* barrier, int x, int y) {
#if defined(KOPT_SIM)
  const int start[] = {x, y};
  sim::load_tile(shared, map, barrier, start);
#else
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const unsigned on = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(on), "r"(x), "r"(y)
      : "memory");
#endif
}

// Stores a tile; fence_proxy_async and a barrier come before it, bulk_commit_group after.
__device__ __forceinline__ void tma_store_2d(const CUtensorMap* map, const void* shared, int x,
                                             int y) {
#if defined(KOPT_SIM)
  const int start[] = {x, y};
  sim::store_tile(map, shared, start);
#else
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
#endif
}

}  // namespace kopt
