// What is wrong with an access, in the fields of a fault record.
#include <cstdio>
#include <cstring>

#include "race_detector.h"

namespace kopt_sim {

FaultRecord describe_access(Fault kind, const Access& access) {
  FaultRecord record = describe_fault(kind, access.pc);
  if (access.variable != nullptr)
    std::snprintf(record.variable, sizeof record.variable, "%s", access.variable);
  record.offset = static_cast<std::int64_t>(access.offset);
  record.variable_bytes = access.variable_bytes;
  record.bytes = access.bytes;
  record.is_store = access.is_store;
  return record;
}

void require_after_producer(const Access& access, const Buffer& buffer) {
  if (g.fiber->after_producer || buffer.is_static) return;
  FaultRecord record = describe_access(Fault::data_race, access);
  std::snprintf(record.note, sizeof record.note,
                "the launch before may still be %s it: griddepcontrol_wait() must come first",
                access.is_store ? "reading" : "writing");
  stop_with(record);
}

void stop_out_of_bounds(const Access& access, const char* note) {
  FaultRecord record = describe_access(Fault::out_of_bounds, access);
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

void report_race(const Access& access, Stamp other, bool other_stored) {
  if (g.learns) return;
  FaultRecord record = describe_access(Fault::data_race, access);
  const std::uint32_t block = stamp_block(other);
  const char* what = other_stored ? "stored to" : "loaded";
  if (stamp_many(other) == 3)
    std::snprintf(record.note, sizeof record.note, "threads of other blocks %s it", what);
  else if (stamp_many(other) != 0)
    std::snprintf(record.note, sizeof record.note, "several threads of the same block %s it", what);
  else if (block == stamp_block(g.stamp))
    std::snprintf(record.note, sizeof record.note, "thread %u of the same block %s it",
                  stamp_thread(other), what);
  else
    std::snprintf(record.note, sizeof record.note, "thread %u of block %llu %s it",
                  stamp_thread(other),
                  static_cast<unsigned long long>(block - g.first_stamp_block), what);
  if (g.watch.bytes != 0) name_other_side(record, other_stored);
  if (access.is_store && other_stored && access.bytes <= sizeof g.pending_write_bytes) {
    g.pending_write_race = record;
    g.pending_write_address = access.address;
    std::memcpy(g.pending_write_bytes, reinterpret_cast<void*>(access.address), access.bytes);
    return;
  }
  keep_fault(record);
}

void note_uninitialized(const Access& access) {
  if (g.pending_uninitialized.kind == Fault::none)
    g.pending_uninitialized = describe_access(Fault::uninitialized_read, access);
}

namespace {

Access name_access(const volatile void* p, unsigned bytes, bool is_store, std::uintptr_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  Access access{address, pc, nullptr, 0, 0, bytes, is_store};
  const std::uintptr_t slot = (address - kArena) >> kSlotBits;
  if (address >= kArena && slot < g.buffer_count) {
    access.variable = g.buffers[slot].name;
    access.variable_bytes = g.buffers[slot].bytes;
    access.offset = address - reinterpret_cast<std::uintptr_t>(g.buffers[slot].base);
  }
  if (const SharedVariable* variable = find_shared(address)) {
    access.variable = variable->name;
    access.variable_bytes = variable->bytes;
    access.offset = address - variable->address;
  }
  return access;
}

}  // namespace

// For accesses that no hook of a fitting width precedes.
void check_alignment(const volatile void* p, unsigned bytes, bool is_store, std::uintptr_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if ((address & (bytes - 1)) == 0) return;
  stop_with(describe_access(Fault::misaligned, name_access(p, bytes, is_store, pc)));
}

// A copy reads and writes from its start on, whenever it lands.
void check_start(const volatile void* p, unsigned bytes, bool is_store, std::uintptr_t pc) {
  const std::uintptr_t slot = (reinterpret_cast<std::uintptr_t>(p) - kArena) >> kSlotBits;
  if (slot < g.buffer_count)
    require_after_producer(name_access(p, bytes, is_store, pc), g.buffers[slot]);
}

}  // namespace kopt_sim
