// The common case of a global access, in few instructions: in bounds, aligned, and the first one of
// its kind to its cells, so that there is nobody to race with. What is not plain is for the checks
// in race_detector.h; they may come after an attempt here, since all that it leaves is this
// thread's own stamp.
#pragma once

#include "race_detector.h"

namespace kopt_sim {

// Puts the running thread's stamp where none is. False: there is one of somebody.
inline bool stamp_first(Stamp& cell) {
  if (g.single_process) {
    if (cell != 0) return false;
    cell = g.stamp;
    return true;
  }
  Stamp none = 0;
  return load_stamp(cell) == 0 && __atomic_compare_exchange_n(&cell, &none, g.stamp, false,
                                                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// Stamps cells that nobody has stored to, nor, for a store, loaded from. The own stamp is there
// before others are read, as in check_cells.
inline bool stamp_untouched(Cell* cell, Cell* end, bool is_store) {
  for (; cell != end; ++cell) {
    if (load_stamp(cell->met) != 0 || load_stamp(is_store ? cell->read : cell->write) != 0 ||
        !stamp_first(is_store ? cell->write : cell->read))
      return false;
    if (load_stamp(cell->met) != 0 || load_stamp(is_store ? cell->read : cell->write) != 0)
      return false;
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
    if (!is_store && !buffer.initialized) return false;
    Cell* const first = buffer.cells + (offset >> buffer.granule_shift);
    Cell* const last = buffer.cells + ((offset + bytes - 1) >> buffer.granule_shift);
    if (!stamp_untouched(first, last + 1, is_store)) return false;
  }
  BufferCounters& counters = g.report->buffers[slot];
  (is_store ? counters.store_bytes : counters.load_bytes) += bytes;
  g.last_pc = pc;
  return true;
}

}  // namespace kopt_sim
