// The common case of an access, in few instructions. Global: in bounds, aligned, and to cells that
// no other thread has stamped, so that there is nobody to race with. Shared: in bounds of a variable
// of the running block, aligned, and ordered after whatever it meets. What is not plain is for the
// checks in race_detector.h; they may come after an attempt here, since all that one leaves is this
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
// there before others are read, as in check_cell. False: that cannot be told here.
inline bool stamp_alone(const BufferCells& cells, std::size_t cell, std::size_t end, bool is_store,
                        bool initialized) {
  const Stamp mine = g.stamp;
  const BufferStamps& own = is_store ? cells.write : cells.read;
  const BufferStamps& others = is_store ? cells.read : cells.write;
  own.announce();
  for (; cell != end; ++cell) {
    if (!stamp_own(own.first[cell], mine)) return false;
    const Stamp other = others.load(cell);
    if (cells.met.load(cell) != 0 || !is_nobody_elses(other, mine)) return false;
    if (!is_store && !initialized && other == 0) return false;
  }
  return true;
}

// Whether a load is of an input, by a thread that may read it and is not traced: no launch writes
// there, so that it meets nobody. Then it is counted and done with.
inline bool is_plain_input(std::uintptr_t address, unsigned bytes, bool aligned,
                           std::uintptr_t pc) {
  const std::uintptr_t place = address - kArena - kSlotLead, slot = place >> kSlotBits;
  const std::uintptr_t offset = place & ((std::uintptr_t{1} << kSlotBits) - 1);
  if (slot >= kMaxBuffers || offset + bytes > g.plain_bytes[slot]) return false;
  if (aligned && (address & (bytes - 1)) != 0) return false;
  if (g.fiber->trace != nullptr || !g.fiber->after_producer) return false;
  g.report->buffers[slot].load_bytes += bytes;
  g.last_pc = pc;
  return true;
}

// Whether the access, to global memory, is plain; then it is counted and done with.
inline bool is_plain_global(std::uintptr_t address, unsigned bytes, bool is_store, bool aligned,
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
  if (buffer.cells.exist()) {
    const std::size_t first = offset >> buffer.granule_shift;
    const std::size_t last = (offset + bytes - 1) >> buffer.granule_shift;
    if (!stamp_alone(buffer.cells, first, last + 1, is_store, buffer.initialized)) return false;
  }
  BufferCounters& counters = g.report->buffers[slot];
  (is_store ? counters.store_bytes : counters.load_bytes) += bytes;
  g.last_pc = pc;
  return true;
}

// Whether a stamp is of the running block and a block barrier lies between it and the next access;
// a stamp of several blocks' threads (3) is none.
inline bool is_before_barrier(Stamp stamp) {
  constexpr Stamp kBlock = kValid | Stamp{0xfffff} << 42;
  const Stamp differs = stamp ^ g.stamp;
  if ((differs & kBlock) != 0 || (differs & kEpochBits) == 0 || stamp_many(stamp) == 3) return false;
  const std::uint32_t unordered = g.block->unordered_epochs;
  return unordered == 0 || epoch_age(stamp_epoch(stamp)) > unordered;
}

// Whether a stamp is of a block that can still race with the running one. Others have left theirs
// at the same addresses, for variables of their own.
inline bool counts_here(Stamp stamp) { return is_valid_here(stamp) && is_of_resident(stamp); }

// Whether an access to this cell of the running block meets nothing that it is not ordered after.
inline bool comes_last(const Cell& cell, bool is_store) {
  if (cell.met != 0) return false;
  if (!is_before_barrier(cell.write)) {
    if (!counts_here(cell.write) ? !is_store : !is_ordered(cell.write)) return false;
  }
  return !is_store || is_before_barrier(cell.read) || !counts_here(cell.read) ||
         is_ordered(cell.read);
}

// The stamp of those that have read a cell of the running block, which reads it now.
inline Stamp join_reader(Stamp earlier) {
  if (earlier == g.stamp || is_before_barrier(earlier) || !counts_here(earlier)) return g.stamp;
  return join(earlier);
}

// Whether the access, to shared memory, is plain; then it is counted and done with. No other
// process has these cells: they are read and stamped as they are.
inline bool is_plain_shared(std::uintptr_t address, unsigned bytes, bool is_store, bool aligned,
                            std::uintptr_t pc) {
  if (is_store ? g.pending_write_race.kind != Fault::none : g.filler >= 0) return false;
  if (is_store && g.block->products_in_flight != 0) return false;  // one may read it
  if (aligned && (address & (bytes - 1)) != 0) return false;
  for (SharedVariable& variable : g.shared) {
    const std::uintptr_t offset = address - variable.address;
    if (offset >= variable.bytes) continue;
    SharedCells& shadow = variable.shadow;
    const unsigned shift = shadow.granule_shift;
    if (bytes > variable.bytes - offset || ((offset | bytes) & ((1u << shift) - 1)) != 0)
      return false;
    Cell* const first = shadow.cells.data() + (offset >> shift);
    Cell* const end = first + (bytes >> shift);
    for (const Cell* cell = first; cell != end; ++cell)
      if (!comes_last(*cell, is_store)) return false;
    for (Cell* cell = first; cell != end; ++cell)
      (is_store ? cell->write : cell->read) = is_store ? g.stamp : join_reader(cell->read);
    (is_store ? g.report->shared_store_bytes : g.report->shared_load_bytes) += bytes;
    g.last_pc = pc;
    return true;
  }
  return false;
}

}  // namespace kopt_sim
