// Shared memory that an asynchronous copy writes: from its start to the wait for it the copy may land
// at any time, so that nobody else may use the place. Here it lands at the wait, and what would have
// met it before shows in the stamps.
#include <cstdio>

#include "race_detector.h"

namespace kopt_sim {

namespace {

bool counts(Stamp stamp) { return is_valid_here(stamp) && is_of_resident(stamp); }

[[noreturn]] void stop_at(const AsyncCopy& copy, Stamp other, const char* did, const char* when) {
  const auto address = reinterpret_cast<std::uintptr_t>(copy.to);
  Access access{address, copy.pc, nullptr, 0, 0, copy.bytes, true};
  if (const SharedVariable* variable = find_shared(address)) {
    access.variable = variable->name;
    access.variable_bytes = variable->bytes;
    access.offset = address - variable->address;
  }
  FaultRecord record = describe_access(Fault::data_race, access);
  char who[40] = "several threads of the same block";
  if (stamp_many(other) == 3 || stamp_block(other) != stamp_block(g.stamp))
    std::snprintf(who, sizeof who, "threads of another block");
  else if (stamp_many(other) == 0)
    std::snprintf(who, sizeof who, "thread %u of the same block", stamp_thread(other));
  std::snprintf(record.note, sizeof record.note,
                "the copy that starts here may land at once: %s %s its destination %s", who, did, when);
  stop_with(record);
}

}  // namespace

// Forgets who has loaded the destination: whoever has when the copy lands did so after its start.
void start_overwriting(const AsyncCopy& copy, Block& owner) {
  if (g.learns) return;
  if (find_shared(reinterpret_cast<std::uintptr_t>(copy.to)) != nullptr)
    require_unread(owner, reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes, copy.pc);
  constexpr char kBefore[] = "and no barrier lies between";
  const auto [first, end] = cells_of(owner, reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes);
  for (Cell* cell = first; cell != end; ++cell) {
    if (counts(cell->read) && !is_ordered(cell->read)) stop_at(copy, cell->read, "loaded", kBefore);
    for (const Stamp store : {cell->write, cell->met})
      if (counts(store) && !is_ordered(store)) stop_at(copy, store, "stored to", kBefore);
    cell->read = 0;
  }
}

void end_overwriting(const AsyncCopy& copy) {
  if (g.learns) return;
  constexpr char kMeanwhile[] = "before it was waited for";
  const auto [first, end] = cells_of(*g.block, reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes);
  for (const Cell* cell = first; cell != end; ++cell) {
    if (counts(cell->read)) stop_at(copy, cell->read, "loaded", kMeanwhile);
    for (const Stamp store : {cell->write, cell->met})
      if (counts(store) && stamp_epoch(store) > stamp_epoch(copy.start))
        stop_at(copy, store, "stored to", kMeanwhile);
  }
}

}  // namespace kopt_sim
