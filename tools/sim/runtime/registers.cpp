// Registers that a product under way writes. They are local variables here, whose addresses the
// product was given: the hooks tell of each access, so that one before the wait is found, and one
// that no wgmma.fence orders before the next product.
#include <cstdio>

#include "race_detector.h"
#include "warpgroup.h"

namespace kopt_sim {

namespace {

static_assert(RegisterMarks::kWords * 4 == kStackBytes);

std::size_t word_of(std::uintptr_t address, std::uintptr_t stack_begin) {
  return (address - stack_begin) / 4;
}

[[noreturn]] void stop_at_register(std::uintptr_t pc, const char* note) {
  FaultRecord record = describe_fault(Fault::data_race, pc);
  record.bytes = 4;
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

}  // namespace

void note_register(std::uintptr_t address, std::size_t bytes, std::uintptr_t pc) {
  RegisterMarks& marks = *g.fiber->registers;
  const std::size_t last = word_of(address + bytes - 1, g.stack_begin);
  for (std::size_t word = word_of(address, g.stack_begin); word <= last; ++word) {
    if (word >= RegisterMarks::kWords) return;
    marks.accessed[word] = true;
    if (marks.in_flight[word])
      stop_at_register(pc, "a wgmma.mma_async under way writes this register: wgmma.wait_group must "
                           "come before it is used");
  }
}

void fence_registers() {
  if (g.fiber->registers == nullptr) g.fiber->registers = new RegisterMarks;
  g.fiber->registers->accessed.reset();
}

bool check_registers(const WarpgroupProduct& product, std::uintptr_t pc) {
  if (g.fiber->registers == nullptr)
    stop_at_register(pc, "no wgmma.fence comes before the first wgmma.mma_async of the thread");
  const RegisterMarks& marks = *g.fiber->registers;
  const unsigned count = sum_registers(product);
  unsigned in_flight = 0;
  bool accessed = false;
  for (unsigned i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(product.sums[i]);
    if (!is_local(address))
      stop_at_register(pc, "the sums of a wgmma.mma_async must be local variables, as registers are");
    in_flight += marks.in_flight[word_of(address, g.stack_begin)];
    accessed |= marks.accessed[word_of(address, g.stack_begin)];
  }
  if (in_flight != 0 && in_flight != count)
    stop_at_register(pc, "some of its registers are those of a wgmma.mma_async of another shape that "
                         "is under way: wgmma.wait_group must come between");
  if (in_flight == 0 && accessed)
    stop_at_register(pc, "a register of its sums was used behind the last wgmma.fence: another one "
                         "must come between");
  return in_flight != 0;
}

void mark_in_flight(const Fiber& fiber, std::uint32_t* const* places, unsigned count, bool starts) {
  for (unsigned i = 0; i < count; ++i) {
    const std::uintptr_t begin = stack_of(fiber);
    fiber.registers->in_flight[word_of(reinterpret_cast<std::uintptr_t>(places[i]), begin)] = starts;
  }
}

}  // namespace kopt_sim
