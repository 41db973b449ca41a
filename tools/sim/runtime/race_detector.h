// The race detector: who touched an element before, and whether that access happens before this one.
#pragma once

#include <cstring>

#include "state.h"

namespace kopt_sim {

inline bool is_of_resident(Stamp stamp) {
  return ((stamp_block(stamp) - g.resident_first) & 0xfffffu) < g.resident.size();
}

// True if the resident blocks have met since `earlier` and the running thread knows: it waited for
// the barrier, and `earlier` came before the arrival at it.
inline bool before_wide_barrier(Stamp earlier) {
  const SyncedEpochs& synced = g.synced[g.fiber->phase != g.phase];
  const std::uint32_t epoch = (earlier & kArrived) != 0 ? synced.ahead : synced.all;
  return stamp_epoch(earlier) < epoch && is_of_resident(earlier);
}

// True if the access stamped `earlier` happens before the running thread's next access.
inline bool is_ordered(Stamp earlier) {
  const std::uint32_t block = stamp_block(earlier), epoch = stamp_epoch(earlier);
  if (block < g.first_stamp_block) return true;  // an earlier launch
  if (before_wide_barrier(earlier)) return true;
  if (block != stamp_block(g.stamp)) return ordered_by_atomics(block, epoch);
  if (stamp_many(earlier) == 3) return false;  // readers in several blocks
  if (epoch != stamp_epoch(g.stamp)) return true;  // a block barrier lies between
  if (stamp_many(earlier) == 2) return false;  // readers in several warps
  const std::uint32_t thread = stamp_thread(earlier);
  if (stamp_many(earlier) == 1)  // readers in one warp, ordered if they all were before its sync
    return thread / 32 == g.fiber->linear / 32 && g.fiber->lane_epoch > stamp_lane_epoch(earlier);
  if (thread == g.fiber->linear) return true;
  if (thread / 32 != g.fiber->linear / 32) return false;
  return warp_of(*g.fiber).seen[g.fiber->linear % 32][thread % 32] > stamp_lane_epoch(earlier);
}

inline bool is_valid_here(Stamp stamp) { return (stamp & kValid) != 0; }

// The stamp that stands for the readers so far and the running thread.
inline Stamp join_readers(Stamp readers) {
  if (!is_valid_here(readers) || stamp_thread(readers) == g.fiber->linear) {
    if (!is_valid_here(readers) || stamp_block(readers) == stamp_block(g.stamp)) return g.stamp;
  }
  if (stamp_block(readers) < g.first_stamp_block || before_wide_barrier(readers)) return g.stamp;
  // What comes after this load comes after the readers that it is ordered after.
  if (stamp_many(readers) != 3 && stamp_block(readers) != stamp_block(g.stamp) &&
      is_ordered(readers))
    return g.stamp;
  if (stamp_block(readers) != stamp_block(g.stamp) || stamp_many(readers) == 3)
    return g.stamp | Stamp{3} << kManyShift;
  if (stamp_epoch(readers) != stamp_epoch(g.stamp)) return g.stamp;
  if (stamp_thread(readers) / 32 != g.fiber->linear / 32 || stamp_many(readers) == 2)
    return g.stamp | Stamp{2} << kManyShift;
  return g.stamp | Stamp{1} << kManyShift;
}

struct Access {
  std::uintptr_t address, pc;
  const char* variable;
  std::uint64_t offset, variable_bytes;
  unsigned bytes;
  bool is_store;
  bool is_atomic = false;
  bool is_volatile = false;
  bool reads_too = false;  // a store that depends on what was there
  bool lands = false;      // a value whose sender has stamped the cells before
};

FaultRecord describe_access(Fault kind, const Access& access);
// In a dependent launch only what is static may be touched before the wait for the launch before.
void require_after_producer(const Access& access, const Buffer& buffer);
[[noreturn]] void stop_out_of_bounds(const Access& access, const char* note);
void report_race(const Access& access, Stamp other, bool other_stored);
void note_uninitialized(const Access& access);

inline Stamp exchange_stamp(Stamp& cell, Stamp value) {
  if (!g.single_process) return __atomic_exchange_n(&cell, value, __ATOMIC_SEQ_CST);
  const Stamp old = cell;
  cell = value;
  return old;
}

// Atomics of any threads may meet. Volatile accesses may across warps, where flags are passed on;
// within a warp they are how unsynchronised reductions used to be written.
inline bool may_meet(const Access& access, Stamp other) {
  if ((other & kAtomic) == 0) return false;
  if (!access.is_volatile) return access.is_atomic;
  return stamp_block(other) != stamp_block(g.stamp) ||
         stamp_thread(other) / 32 != g.fiber->linear / 32;
}

// Checks one access against `cells` and stamps them. `initialized`: holds values from the start.
// `per_block`: shared memory, where stamps of blocks that are gone are of an earlier use.
template <bool per_block>
inline void check_cells(Cell* cell, Cell* end, const Access& access, bool initialized) {
  const Stamp mine = access.is_atomic || access.is_volatile ? g.stamp | kAtomic : g.stamp;
  const auto counts = [](Stamp stamp) {
    if (!is_valid_here(stamp)) return false;
    return !per_block || is_of_resident(stamp);
  };
  for (; cell != end; ++cell) {
    if (access.is_store) {
      const Stamp writer = exchange_stamp(cell->write, mine);
      const Stamp reader = __atomic_load_n(&cell->read, __ATOMIC_SEQ_CST);
      if (!counts(writer)) {
        if (access.reads_too && !initialized) note_uninitialized(access);
      } else if (!access.lands && !may_meet(access, writer) && !is_ordered(writer)) {
        report_race(access, writer, true);
      }
      if (counts(reader) && !is_ordered(reader)) report_race(access, reader, false);
    } else {
      // A volatile load may meet volatile stores: it leaves no stamp.
      if (!access.is_volatile) {
        const Stamp joined = join_readers(per_block && !counts(cell->read) ? 0 : cell->read);
        if (joined != cell->read) exchange_stamp(cell->read, joined);
      }
      const Stamp writer = __atomic_load_n(&cell->write, __ATOMIC_SEQ_CST);
      if (!counts(writer)) {
        if (!initialized) note_uninitialized(access);
      } else if (!may_meet(access, writer) && !is_ordered(writer)) {
        report_race(access, writer, true);
      }
    }
  }
}

// shared_memory.cpp. False: `access` is to no shared variable of any resident block.
bool check_shared(Access access, bool aligned);
[[noreturn]] void stop_near_shared(Access access);

}  // namespace kopt_sim
