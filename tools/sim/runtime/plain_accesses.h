// The common case of a global access, in few instructions: in bounds, aligned, and to cells that no
// other thread has stamped, so that there is nobody to race with. What is not plain is for the
// checks in race_detector.h; they may come after an attempt here, since all that it leaves is this
// thread's own stamp, in the place of none or of an own one.
#pragma once

#include "race_detector.h"

namespace kopt_sim {

// Bits that two stamps of one thread of one block share, whatever its epochs.
constexpr Stamp kWho = kValid | kStrangers | Stamp{0xfffff} << 42 | Stamp{0xfff};

// Whether nobody left the stamp, or the thread of `mine` alone: it is ordered after itself.
inline bool is_nobody_elses(Stamp stamp, Stamp mine) {
  return stamp == 0 || ((stamp ^ mine) & kWho) == 0;
}

// Puts the own stamp into the place of none or of an own one. False: there is somebody else's.
inline bool stamp_own(Stamp& cell, Stamp mine) {
  Stamp old = load_stamp(cell);
  if (old == mine) return true;
  if (!is_nobody_elses(old, mine)) return false;
  if (!g.single_process)
    return __atomic_compare_exchange_n(&cell, &old, mine, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  cell = mine;
  return true;
}

// Stamps cells that no other thread has stored to, nor, for a store, loaded from. The own stamp is
// there before others are read, as in check_cells. False: that cannot be told here.
inline bool stamp_alone(Cell* cell, Cell* end, bool is_store, bool initialized) {
  const Stamp mine = g.stamp;
  for (; cell != end; ++cell) {
    if (!stamp_own(is_store ? cell->write : cell->read, mine)) return false;
    const Stamp other = load_stamp(is_store ? cell->read : cell->write);
    if (load_stamp(cell->met) != 0 || !is_nobody_elses(other, mine)) return false;
    if (!is_store && !initialized && other == 0) return false;
  }
  return true;
}

// Whether the access is plain; then it is counted and done with.
inline bool is_plain_access(std::uintptr_t address, unsigned bytes, bool is_store, bool aligned,
                            std::uintptr_t pc) {
  const std::uintptr_t place = address - kArena;
  const std::uintptr_t slot = place >> kSlotBits;
  if (slot >= g.buffer_count) return false;
  const Buffer& buffer = g.buffers[slot];
  const std::uintptr_t offset = (place & ((std::uintptr_t{1} << kSlotBits) - 1)) - kSlotLead;
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) return false;
  if (aligned && (address & (bytes - 1)) != 0) return false;
  if (g.fiber->trace != nullptr || !(g.fiber->after_producer || buffer.is_static)) return false;
  if (is_store && (buffer.role == Role::in || g.pending_write_race.kind != Fault::none))
    return false;
  if (buffer.cells != nullptr) {
    Cell* const first = buffer.cells + (offset >> buffer.granule_shift);
    Cell* const last = buffer.cells + ((offset + bytes - 1) >> buffer.granule_shift);
    if (!stamp_alone(first, last + 1, is_store, buffer.initialized)) return false;
  }
  BufferCounters& counters = g.report->buffers[slot];
  (is_store ? counters.store_bytes : counters.load_bytes) += bytes;
  g.last_pc = pc;
  return true;
}

}  // namespace kopt_sim
