// Columns of tensor memory: they are allocated and given back by warps, all 128 lanes of them.
#include <algorithm>
#include <cstdio>

#include "race_detector.h"
#include "tensor_memory.h"

namespace kopt_sim {

namespace {

constexpr unsigned kLeastColumns = 32;

template <class... Values>
[[noreturn]] void stop_allocating(std::uintptr_t pc, const char* note, Values... values) {
  FaultRecord record = describe_fault(Fault::crash, pc);
  std::snprintf(record.note, sizeof record.note, note, values...);
  stop_with(record);
}

// The first column from which so many are free; kTensorColumns: there is none.
unsigned free_column(const TensorMemory& memory, unsigned columns) {
  for (unsigned first = 0; first + columns <= kTensorColumns; first += kLeastColumns) {
    const bool meets = std::any_of(
        memory.allocations.begin(), memory.allocations.end(), [&](const TensorAllocation& one) {
          return first < one.column + one.columns && one.column < first + columns;
        });
    if (!meets) return first;
  }
  return kTensorColumns;
}

void require_count(unsigned columns, std::uintptr_t pc) {
  if (columns < kLeastColumns || columns > kTensorColumns || (columns & (columns - 1)) != 0)
    stop_allocating(pc, "%u columns of tensor memory: it is given in powers of 2 from 32 to 512",
                    columns);
}

}  // namespace

unsigned allocate_columns(unsigned columns, int line, std::uintptr_t pc) {
  TensorMemory& memory = g.block->tensor;
  require_count(columns, pc);
  if (memory.relinquished)
    stop_allocating(pc, "tcgen05.alloc comes behind tcgen05.relinquish_alloc_permit");
  if (columns > memory.last_columns)
    stop_allocating(pc, "tcgen05.alloc of %u columns behind one of %u: none may be larger than the "
                    "one before", columns, memory.last_columns);
  const unsigned first = free_column(memory, columns);
  if (first == kTensorColumns) return first;
  memory.cells.resize(kTensorLanes * kTensorColumns);
  memory.allocations.push_back({first, columns, line});
  memory.last_columns = columns;
  return first;
}

bool has_room(unsigned columns) {
  return free_column(g.block->tensor, columns) != kTensorColumns;
}

void free_columns(std::uint32_t address, unsigned columns, std::uintptr_t pc) {
  auto& allocations = g.block->tensor.allocations;
  const auto found = std::find_if(
      allocations.begin(), allocations.end(), [&](const TensorAllocation& one) {
        return one.column == address && one.columns == columns;
      });
  if (found == allocations.end())
    stop_allocating(pc, "tcgen05.dealloc of %u columns at 0x%08x, where no tcgen05.alloc has "
                    "returned so many", columns, address);
  require_unused({0, kTensorLanes, address, columns}, pc);
  allocations.erase(found);
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = g.block->fibers[i];
    if (fiber.wait == Wait::tensor_memory) fiber.wait = Wait::runnable;
  }
}

void check_tensor_memory(Block& block) {
  if (g.stopping || block.tensor.allocations.empty()) return;
  const TensorAllocation& left = block.tensor.allocations.front();
  FaultRecord record = describe_fault(Fault::crash, 0);
  record.line = left.line;
  std::snprintf(record.note, sizeof record.note,
                "the block ends with %u columns of tensor memory that it has not given back: "
                "tcgen05.dealloc must come before", left.columns);
  keep_fault(record);
}

}  // namespace kopt_sim
