// The race detector: who touched an element before, and whether that access happens before this one.
#pragma once

#include <cstring>

#include "ordering.h"

namespace kopt_sim {

inline bool is_of_resident(Stamp stamp) {
  return ((stamp_block(stamp) - g.resident_first) & 0xfffffu) < g.resident.size();
}

// True if the resident blocks have met since `earlier` and the running thread knows: it waited for
// the barrier, and `earlier` came before the arrival at it.
inline bool before_wide_barrier(Stamp earlier) {
  if (!is_of_resident(earlier) || (earlier & kStrangers) != 0) return false;
  const SyncedEpochs& synced = g.synced[g.fiber->phase != g.phase];
  return stamp_epoch(earlier) < ((earlier & kArrived) != 0 ? synced.ahead : synced.all);
}

// True if a named barrier lies between; one of several reading warps need not have come to it.
inline bool is_met(Stamp earlier, std::uint32_t age) {
  const std::size_t warps = g.block->warps.size();
  const std::uint32_t* const met = &g.block->met[g.fiber->linear / 32 * warps];
  const auto comes_after = [age](std::uint32_t epoch) { return age > g.block->epoch - epoch; };
  if (stamp_many(earlier) != 2) return comes_after(met[stamp_thread(earlier) / 32]);
  for (std::size_t warp = 0; warp < warps; ++warp)
    if (warp != g.fiber->linear / 32 && comes_after(met[warp])) return true;
  return false;
}

// True if the access stamped `earlier` happens before the running thread's next access.
inline bool is_ordered(Stamp earlier) {
  const std::uint32_t block = stamp_block(earlier), epoch = stamp_epoch(earlier);
  if (block < g.first_stamp_block) return true;  // an earlier launch
  if (before_wide_barrier(earlier)) return true;
  if (block != stamp_block(g.stamp)) return ordered_by_atomics(block, epoch);
  if (stamp_many(earlier) == 3) return false;  // readers in several blocks
  const std::uint32_t age = epoch_age(epoch), thread = stamp_thread(earlier);
  if (age > g.block->unordered_epochs) return true;  // a block barrier lies between
  if (!g.block->met.empty() && is_met(earlier, age)) return true;
  if (stamp_many(earlier) == 2) return false;  // readers in several warps
  if (stamp_many(earlier) == 1)  // readers in one warp, ordered if they all were before its sync
    return thread / 32 == g.fiber->linear / 32 && g.fiber->lane_epoch > stamp_lane_epoch(earlier);
  if (thread == g.fiber->linear) return true;
  if (thread / 32 != g.fiber->linear / 32) return false;
  return warp_of(*g.fiber).seen[g.fiber->linear % 32][thread % 32] > stamp_lane_epoch(earlier);
}

inline bool is_valid_here(Stamp stamp) { return (stamp & kValid) != 0; }

// The stamp that stands for those that made `earlier` and for the running thread. What comes after
// this access comes after those that it is ordered after: they need not be kept.
inline Stamp join(Stamp earlier) {
  if (!is_valid_here(earlier) || is_ordered(earlier)) return g.stamp;
  const Stamp mine = g.stamp | (earlier & kArrived);
  if (stamp_block(earlier) != stamp_block(g.stamp) || stamp_many(earlier) == 3) {
    const bool strangers = (earlier & kStrangers) != 0 || !is_of_resident(earlier);
    return mine | (strangers ? kStrangers : 0) | Stamp{3} << kManyShift;
  }
  if (stamp_thread(earlier) / 32 != g.fiber->linear / 32 || stamp_many(earlier) == 2)
    return mine | Stamp{2} << kManyShift;
  return mine | Stamp{1} << kManyShift;
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
  bool is_rechecked = false;  // a load that an atomic operation on the same address checks again
};

FaultRecord describe_access(Fault kind, const Access& access);
// watch.cpp
void keep_if_watched(const Access& access);
void name_other_side(FaultRecord& race, bool other_stored);
// In a dependent launch only what is static may be touched before the wait for the launch before.
void require_after_producer(const Access& access, const Buffer& buffer);
[[noreturn]] void stop_out_of_bounds(const Access& access, const char* note);
void report_race(const Access& access, Stamp other, bool other_stored);
void note_uninitialized(const Access& access);

// Puts next(old) in the place of a stamp, and returns the old one.
template <class Next>
inline Stamp replace_stamp(Stamp& cell, Next next) {
  if (g.single_process) {
    const Stamp old = cell;
    cell = next(old);
    return old;
  }
  Stamp old = load_stamp(cell);
  for (;;) {
    const Stamp wanted = next(old);
    if (wanted == old) return old;
    if (__atomic_compare_exchange_n(&cell, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return old;
  }
}

// Atomics of any threads may meet. Volatile accesses may across warps, where flags are passed on;
// within a warp they are how unsynchronised reductions used to be written.
inline bool may_meet(const Access& access, Stamp met) {
  if (access.is_rechecked) return true;
  if (!access.is_volatile) return access.is_atomic;
  return stamp_block(met) != stamp_block(g.stamp) ||
         stamp_thread(met) / 32 != g.fiber->linear / 32;
}

// A stamp in the shared memory of a block.
struct SharedPlace {
  Stamp& stamp;

  Stamp load() const { return load_stamp(stamp); }
  template <class Next>
  Stamp replace(Next next) const {
    return replace_stamp(stamp, next);
  }
  // Stamps of blocks that are gone are of an earlier use.
  static bool counts(Stamp stamp) { return is_valid_here(stamp) && is_of_resident(stamp); }
};

// A stamp of a buffer.
struct BufferPlace {
  const BufferStamps& stamps;
  std::size_t cell;

  Stamp load() const { return stamps.load(cell); }
  template <class Next>
  Stamp replace(Next next) const {
    stamps.announce();
    return replace_stamp(stamps.first[cell], next);
  }
  static bool counts(Stamp stamp) { return is_valid_here(stamp); }
};

// Checks one access against the stamps of one cell and leaves its own. `initialized`: the cell holds
// a value from the start.
template <class Place>
inline void check_cell(Place write, Place read, Place met_by, const Access& access,
                       bool initialized) {
  const auto joined = [](Stamp old) { return join(Place::counts(old) ? old : 0); };
  const auto mine = [](Stamp) { return g.stamp; };
  const bool meets = access.is_store && (access.is_atomic || access.is_volatile);
  const bool stores = access.is_store && !meets;
  // A volatile load may meet volatile stores: it leaves no stamp.
  if (!access.is_store && !access.is_volatile && !access.is_rechecked) read.replace(joined);
  // The own stamp is there before others are read: of two processes one sees the other's.
  const Stamp before = meets ? met_by.replace(joined) : 0;
  const Stamp writer = stores ? write.replace(mine) : write.load();
  const Stamp met = meets ? before : met_by.load();
  if (!Place::counts(writer) && !Place::counts(met)) {
    if ((!access.is_store || access.reads_too) && !initialized) note_uninitialized(access);
  } else if (!access.lands) {
    if (Place::counts(writer) && !is_ordered(writer)) report_race(access, writer, true);
    else if (Place::counts(met) && !may_meet(access, met) && !is_ordered(met))
      report_race(access, met, true);
  }
  if (!access.is_store) return;
  const Stamp reader = read.load();
  if (Place::counts(reader) && !is_ordered(reader)) report_race(access, reader, false);
}

inline void check_shared_cells(Cell* cell, Cell* end, const Access& access, bool initialized) {
  for (; cell != end; ++cell)
    check_cell<SharedPlace>({cell->write}, {cell->read}, {cell->met}, access, initialized);
  if (g.watch.bytes != 0) keep_if_watched(access);
}

inline void check_buffer_cells(const Buffer& buffer, const Access& access) {
  const BufferCells& cells = buffer.cells;
  const std::size_t last = (access.offset + access.bytes - 1) >> buffer.granule_shift;
  for (std::size_t i = access.offset >> buffer.granule_shift; i <= last; ++i)
    check_cell<BufferPlace>({cells.write, i}, {cells.read, i}, {cells.met, i}, access,
                            buffer.initialized);
  if (g.watch.bytes != 0) keep_if_watched(access);
}

// shared_memory.cpp. False: `access` is to no shared variable of any resident block.
bool check_shared(Access access, bool aligned);
[[noreturn]] void stop_near_shared(Access access);

}  // namespace kopt_sim
