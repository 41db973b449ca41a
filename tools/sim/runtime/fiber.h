// One CUDA thread: what it waits for, what it has met, and what it did last.
#pragma once

#include <cstdint>
#include <vector>

#include "async_state.h"
#include "named_barrier.h"
#include "stamp.h"
#include "warpgroup.h"

extern "C" {
struct KoptIndex3 {
  std::uint32_t x, y, z;
};
// CUDA's built-in variables; candidates see them as const, each thread finds its own values.
extern KoptIndex3 threadIdx, blockIdx, blockDim, gridDim;
}

namespace kopt_sim {

struct Index3 {
  std::uint32_t x, y, z;
};

inline std::uint64_t volume(const Index3& extent) {
  return std::uint64_t{extent.x} * extent.y * extent.z;
}

enum class Wait : std::uint8_t {
  runnable,
  barrier,
  exchange,
  warp_sync,
  converge,  // until no lane of the warp can run
  mbarrier,
  matrix,
  tensor_memory,  // for columns that another warp has allocated
  warpgroup,  // for all 128 threads, at a wgmma instruction
  lanes,  // of its warp, at a named barrier
  named,
  cluster,
  grid,
  done
};

// When a thread comes after what was published before a flag that it has read.
enum class Acquires : std::uint8_t { nothing, at_fence, at_barrier };

struct TraceEntry {
  std::uintptr_t pc, address;
  std::uint32_t bytes;
  std::uint32_t epoch;
  bool is_store;
};

// A load that an atomic operation on the same address may check again.
struct RecentLoad {
  std::uintptr_t address, pc;
  unsigned bytes;
  std::uint64_t value;
  Stamp when;
};

// Loads and atomic operations at one line on one address, one after another.
struct Spin {
  std::uintptr_t address, pc;
  unsigned count;
};

struct Fiber {
  void* stack_pointer;
  Wait wait;
  std::uint8_t exchange_kind;
  std::uint8_t exchange_result;  // where its warp keeps what it was given
  std::uint8_t fence;  // 0 none, 1 block, 2 device: passed since the last atomic
  Acquires acquires;
  std::uint32_t mask;  // of the lanes that it waits for; at a matrix or wgmma instruction its code
  std::uint32_t exchange_lanes;
  std::uintptr_t mbarrier;  // waited for
  bool tries;               // to wait there: it may as well be told that the phase is not complete
  bool has_failed;          // its last try did
  unsigned stalls;          // tries since one succeeded that failed as nothing else could go on
  NamedArrival named;       // the last one
  std::uint32_t vote;       // there: what it gave, then what all gave
  bool arrived;             // at the cluster barrier, and has not waited for it since
  bool arrived_relaxed;     // there, so that its arrival orders nothing
  std::uint32_t arrival_phase;
  std::uint32_t phase;  // it comes after what other blocks did in earlier phases
  bool after_producer;  // it, or a thread that it has met, waited for the launch before
  int line;
  std::uint32_t lane_epoch;
  std::uint32_t proxy_epoch;  // of its last proxy fence, plus 1
  Index3 thread;
  std::uint32_t linear;
  // Committed groups, the last one still open: of cp.async, and of bulk stores.
  std::uint32_t targets;  // blocks of the cluster, by rank, that its next bulk load goes to; 0: its own
  std::vector<CopyGroup>*async, *bulk_stores;
  RegisterMarks* registers;  // null before its first wgmma.fence
  bool lands;                // the products that its warpgroup waits for
  std::vector<TraceEntry>* trace;              // null unless this thread is sampled
  RecentLoad recent[4];
  unsigned recent_count;
  Spin spin;
};

}  // namespace kopt_sim
