// Every load and store of the candidate: -fsanitize=thread makes the compiler call a hook before
// each, and these hooks are ours. They check bounds, alignment, races and initialisation.
#include <cstring>

#include "plain_accesses.h"

// Where every `extern __shared__` array of the candidate lies (the linker is told so), with room
// behind it that no launch may use.
extern "C" {
alignas(1024) std::uint8_t kopt_sim_dynamic_shared[(228 << 10) + 4096];
}

namespace kopt_sim {

namespace {

void check_global(Access access, bool aligned) {
  const std::uintptr_t offset = access.address - kArena;
  const auto slot = static_cast<unsigned>(offset >> kSlotBits);
  if (slot >= g.buffer_count) stop_out_of_bounds(access, "the address belongs to no buffer");
  Buffer& buffer = g.buffers[slot];
  access.variable = buffer.name;
  access.variable_bytes = buffer.bytes;
  access.offset = (offset & ((std::uintptr_t{1} << kSlotBits) - 1)) - kSlotLead;
  if (access.offset + access.bytes > buffer.bytes || access.offset > buffer.bytes)
    stop_out_of_bounds(access, "");
  if (aligned && (access.address & (access.bytes - 1)) != 0)
    stop_with(describe_access(Fault::misaligned, access));
  require_after_producer(access, buffer);
  BufferCounters& counters = g.report->buffers[slot];
  if (access.is_store) {
    if (buffer.role == Role::in) stop_with(describe_access(Fault::input_mutated, access));
    counters.store_bytes += access.bytes;
  } else {
    counters.load_bytes += access.bytes;
  }
  if (buffer.cells.exist()) check_buffer_cells(buffer, access);
  if (g.fiber->trace != nullptr)
    trace_access(access.pc, access.address, access.bytes, access.is_store);
}

inline void check_any(const Access& access, bool aligned) {
  g.last_pc = access.pc;
  // Where a struct is copied, the load is announced between its store and the copy itself.
  if (access.is_store && g.pending_write_race.kind != Fault::none) settle_pending_write();
  if (access.address - kArena < std::uintptr_t{kMaxBuffers} << kSlotBits) {
    check_global(access, aligned);
  } else if (!check_shared(access, aligned)) {
    const bool constant =
        access.address >= g.constant_begin && access.address + access.bytes <= g.constant_end;
    if (!constant || access.is_store) stop_near_shared(access);
  }
}

inline void note_that_it_ran(std::uintptr_t pc) {
  if (pc - g.code_begin <= g.code_last - g.code_begin) g.has_run[pc - g.code_begin] = 1;
}

[[gnu::noinline, gnu::cold]] void end_turn() {
  if (take_back_served()) return;
  g.accesses_until_switch = draw_turn();
  return_to_scheduler();
}

inline void end_turn_if_due() {
  if (--g.accesses_until_switch == 0) end_turn();
}

// Apart from the hooks, whose many copies of the common case stay small this way.
[[gnu::noinline]] void check_further(std::uintptr_t address, unsigned bytes, bool is_store,
                                     bool aligned, std::uintptr_t pc) {
  if (!is_second_look() && is_plain_shared(address, bytes, is_store, aligned, pc)) return;
  Access access{address, pc, nullptr, 0, 0, bytes, is_store};
  if (g.learns) is_store ? forget_loads() : note_load(address, bytes, pc);
  else if (!is_store && !g.rechecked.empty()) access.is_rechecked = is_rechecked(pc);
  check_any(access, aligned);
}

inline void check_access(std::uintptr_t address, unsigned bytes, bool is_store, bool aligned,
                         std::uintptr_t pc) {
  note_that_it_ran(pc);
  if (is_local(address)) {
    if (g.fiber->registers != nullptr) note_register(address, bytes, pc);
    return;
  }
  end_turn_if_due();  // before the checks: what follows them is the access itself
  if (!is_store && is_plain_input(address, bytes, aligned, pc)) return;
  if (is_second_look() || !is_plain_global(address, bytes, is_store, aligned, pc))
    check_further(address, bytes, is_store, aligned, pc);
}

// Volatile accesses are rare: one copy for all widths.
[[gnu::noinline]] void check_volatile(std::uintptr_t address, unsigned bytes, bool is_store,
                                      std::uintptr_t pc) {
  note_that_it_ran(pc);
  if (is_local(address)) {
    if (g.fiber->registers != nullptr) note_register(address, bytes, pc);
    return;
  }
  end_turn_if_due();
  Access access{address, pc, nullptr, 0, 0, bytes, is_store};
  access.is_volatile = true;
  const std::uintptr_t place = address_among_blocks(address);
  if (g.learns) is_store ? forget_loads() : note_load(address, bytes, pc);
  access.is_rechecked = !is_store && is_rechecked(pc);
  if (!is_store) count_spin(address, pc);
  check_any(access, true);
  if (is_store) {
    keep_overwritten(place, access);
    publish_by_atomic(place);
  } else if (!serve_overwritten(place, access)) {
    read_published(place, Acquires::at_fence);
  }
}

}  // namespace

bool is_candidate_memory(std::uintptr_t address) {
  return address - kArena < std::uintptr_t{kMaxBuffers} << kSlotBits || is_shared(address);
}

namespace {

inline std::uintptr_t to_address(const volatile void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

// How many accesses a thread makes before others get their turn. In the natural order a thread
// runs until it waits; the limit is for one that spins.
std::uint32_t draw_turn() {
  return g.schedule_seed == 0 ? 1u << 16 : 16 + static_cast<std::uint32_t>(g.random() % 240);
}

void check_load(const volatile void* p, unsigned bytes, std::uintptr_t pc) {
  check_access(to_address(p), bytes, false, true, pc);
}

void check_store(const volatile void* p, unsigned bytes, std::uintptr_t pc) {
  check_access(to_address(p), bytes, true, true, pc);
}

void check_atomic(std::uintptr_t address, unsigned bytes, bool reads, std::uintptr_t pc) {
  end_turn_if_due();
  Access access{address, pc, nullptr, 0, 0, bytes, true};
  access.is_atomic = true;
  access.reads_too = reads;
  const std::uintptr_t place = address_among_blocks(address);
  if (reads) count_spin(address, pc);
  forget_loads();
  read_published(place, Acquires::at_barrier);
  check_any(access, true);
  publish_by_atomic(place);
}

// Both sides are checked as accesses of the running thread.
void copy_checked(const AsyncCopy& copy) {
  take_back_served();
  const std::uintptr_t to = to_address(copy.to), from = to_address(copy.from);
  if (copy.source_bytes != 0) {
    if (!is_local(from)) check_any({from, copy.pc, nullptr, 0, 0, copy.source_bytes, false}, false);
  }
  end_overwriting(copy);
  if (!is_local(to)) check_any({to, copy.pc, nullptr, 0, 0, copy.bytes, true}, false);
  std::memcpy(copy.to, copy.from, copy.source_bytes);
  std::memset(static_cast<std::uint8_t*>(copy.to) + copy.source_bytes, 0,
              copy.bytes - copy.source_bytes);
}

}  // namespace kopt_sim

using kopt_sim::check_access;
using kopt_sim::check_volatile;
using kopt_sim::to_address;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))
#define HOOKS(BYTES)                                                                           \
  void __tsan_read##BYTES(void* p) { check_access(to_address(p), BYTES, false, true, CALLER); } \
  void __tsan_write##BYTES(void* p) { check_access(to_address(p), BYTES, true, true, CALLER); } \
  void __tsan_unaligned_read##BYTES(void* p) {                                                 \
    check_access(to_address(p), BYTES, false, false, CALLER);                                  \
  }                                                                                            \
  void __tsan_unaligned_write##BYTES(void* p) {                                                \
    check_access(to_address(p), BYTES, true, false, CALLER);                                   \
  }                                                                                            \
  void __tsan_volatile_read##BYTES(void* p) {                                                  \
    check_volatile(to_address(p), BYTES, false, CALLER);                                       \
  }                                                                                            \
  void __tsan_volatile_write##BYTES(void* p) {                                                 \
    check_volatile(to_address(p), BYTES, true, CALLER);                                        \
  }

extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* p, std::size_t bytes) {
  if (bytes != 0) check_access(to_address(p), static_cast<unsigned>(bytes), false, false, CALLER);
}
void __tsan_write_range(void* p, std::size_t bytes) {
  if (bytes != 0) check_access(to_address(p), static_cast<unsigned>(bytes), true, false, CALLER);
}
// Beside atomic loads of bytes: the guards of `__shared__` variables. Arrays of __nv_bfloat162 and
// its like have one, for a constructor that does nothing: 1 says that it has run.
std::uint8_t __tsan_atomic8_load(const volatile void* p, int) {
  const std::uintptr_t address = to_address(p);
  const auto* byte = static_cast<const volatile std::uint8_t*>(p);
  if (!kopt_sim::is_candidate_memory(address)) return 1;
  kopt_sim::check_atomic(address, 1, true, CALLER);
  return *byte;
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// The candidate's calls of memcpy and its like, which no hook precedes, come here by an assembler
// name given in device.h.
void* kopt_sim_memcpy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return to;
  check_access(to_address(from), static_cast<unsigned>(bytes), false, false, CALLER);
  check_access(to_address(to), static_cast<unsigned>(bytes), true, false, CALLER);
  return std::memcpy(to, from, bytes);
}
void* kopt_sim_memmove(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return to;
  check_access(to_address(from), static_cast<unsigned>(bytes), false, false, CALLER);
  check_access(to_address(to), static_cast<unsigned>(bytes), true, false, CALLER);
  return std::memmove(to, from, bytes);
}
void* kopt_sim_memset(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return to;
  check_access(to_address(to), static_cast<unsigned>(bytes), true, false, CALLER);
  return std::memset(to, value, bytes);
}

void kopt_sim_atomic(const volatile void* p, unsigned bytes, bool reads, const void* caller) {
  kopt_sim::check_atomic(to_address(p), bytes, reads, to_address(caller));
}

void kopt_sim_require_aligned(const volatile void* p, unsigned bytes, bool is_store) {
  kopt_sim::check_alignment(p, bytes, is_store, CALLER);
}
}
