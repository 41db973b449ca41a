// Accesses of tensor memory. Lanes of a warp access it together: one of them stands for all.
#include <algorithm>
#include <cstdio>

#include "race_detector.h"
#include "tensor_memory.h"

namespace kopt_sim {

namespace {

struct CellAccess {
  unsigned lane, column;
  TensorUse use;
  std::uintptr_t pc;
  const TensorOperation* operation = nullptr;

  bool stores() const { return use == TensorUse::store || use == TensorUse::write; }
  bool is_later() const { return use == TensorUse::read || use == TensorUse::write; }
};

[[noreturn]] void stop_at_cell(Fault kind, const CellAccess& access, const char* note) {
  FaultRecord record = describe_fault(kind, access.pc);
  record.bytes = 4;
  record.is_store = access.stores();
  std::snprintf(record.note, sizeof record.note, "lane %u, column %u of tensor memory: %s",
                access.lane, access.column, note);
  stop_with(record);
}

bool is_allocated(const TensorMemory& memory, unsigned column) {
  return std::any_of(memory.allocations.begin(), memory.allocations.end(),
                     [column](const TensorAllocation& one) {
                       return column - one.column < one.columns;
                     });
}

// Whether the hardware keeps the order of an operation that begins and of the last one that writes a
// cell: products of one thread with the same accumulator, kind and shape follow each other, and what
// a copy brings is there for them, and was read by them where another copy begins to bring more.
bool follows_writer(const TensorCell& cell, const CellAccess& access) {
  if (access.operation == nullptr) return false;
  const auto& under_way = g.block->tensor.under_way;
  const auto found = std::lower_bound(
      under_way.begin(), under_way.end(), cell.writer,
      [](const TensorOperation& one, std::uint32_t number) { return one.number < number; });
  if (found == under_way.end() || found->issuer != access.operation->issuer) return false;
  if (!found->is_product) return access.operation->is_product || cell.reading != 0;
  return access.stores() && found->accumulator == access.operation->accumulator;
}

void require_idle(const TensorCell& cell, const CellAccess& access) {
  if (cell.writing != 0 && !follows_writer(cell, access))
    stop_at_cell(Fault::data_race, access,
                 "a tcgen05.mma or .cp under way writes it: tcgen05.commit and a wait for its "
                 "mbarrier must come before");
  if (access.stores() && cell.reading != 0 &&
      (access.operation == nullptr || cell.reader != access.operation->issuer))
    stop_at_cell(Fault::data_race, access,
                 "a tcgen05.mma under way reads it: tcgen05.commit and a wait for its mbarrier "
                 "must come before");
  if (cell.storing != 0)
    stop_at_cell(Fault::data_race, access,
                 "a tcgen05.st under way writes it: tcgen05.wait::st must come before");
  if (access.stores() && cell.loading != 0)
    stop_at_cell(Fault::data_race, access,
                 "a tcgen05.ld under way reads it: tcgen05.wait::ld must come before");
}

bool is_of_own_warp(Stamp stamp) {
  return stamp_block(stamp) == stamp_block(g.stamp) && stamp_many(stamp) <= 1 &&
         stamp_thread(stamp) / 32 == g.fiber->linear / 32;
}

// Between threads each side has a fence of its own; what an mbarrier has told of, and what the same
// warp did before, needs none on the side that comes first.
void require_fences(Stamp earlier, bool was_later, const CellAccess& access) {
  const bool own = is_of_own_warp(earlier);
  if (own && (!was_later || access.is_later())) return;
  const std::uint32_t epoch = stamp_epoch(earlier);
  if (!was_later && stamp_many(earlier) <= 1 &&
      g.block->tensor.warps[stamp_thread(earlier) / 32].fenced_before <= epoch)
    stop_at_cell(Fault::data_race, access,
                 "another warp used it with no tcgen05.fence::before_thread_sync behind that");
  if (tensor_warp_of(*g.fiber).fenced_after <= epoch + 1)
    stop_at_cell(Fault::data_race, access,
                 "it was used before, and no tcgen05.fence::after_thread_sync lies between");
}

void require_ordered(Stamp earlier, bool was_store, const CellAccess& access) {
  if (!is_valid_here(earlier) || is_of_own_warp(earlier) || is_ordered(earlier)) return;
  char note[80];
  const char* did = was_store ? "wrote" : "read";
  if (stamp_many(earlier) != 0) std::snprintf(note, sizeof note, "several warps %s it", did);
  else
    std::snprintf(note, sizeof note, "thread %u of the same block %s it", stamp_thread(earlier), did);
  stop_at_cell(Fault::data_race, access, note);
}

void stamp_cell(TensorCell& cell, const CellAccess& access) {
  if (access.stores()) {
    cell.written = g.stamp;
    cell.written_later = access.is_later();
    cell.read = 0;
  } else {
    cell.read = join(cell.read);
    cell.read_later = access.is_later();
  }
  if (access.operation == nullptr) return;
  if (access.stores()) {
    ++cell.writing;
    cell.writer = access.operation->number;
  } else {
    ++cell.reading;
    cell.reader = access.operation->issuer;
  }
}

void check_cell_use(TensorCell& cell, const CellAccess& access) {
  require_idle(cell, access);
  require_ordered(cell.written, true, access);
  if (access.stores()) require_ordered(cell.read, false, access);
  const bool reads = !access.stores() || (access.operation != nullptr && access.operation->accumulates);
  if (reads && !is_valid_here(cell.written))
    stop_at_cell(Fault::uninitialized_read, access, "nothing has written it");
  if (is_valid_here(cell.written)) require_fences(cell.written, cell.written_later, access);
  if (access.stores() && is_valid_here(cell.read))
    require_fences(cell.read, cell.read_later, access);
  stamp_cell(cell, access);
}

}  // namespace

TensorWarp& tensor_warp_of(const Fiber& fiber) {
  std::vector<TensorWarp>& warps = g.block->tensor.warps;
  if (warps.empty()) warps.resize(g.block->warps.size());
  return warps[fiber.linear / 32];
}

TensorCell& cell_at(Block& block, unsigned lane, unsigned column) {
  return block.tensor.cells[cell_number(lane, column)];
}

void use_cells(const TensorRegion& region, TensorUse use, std::uintptr_t pc,
               const TensorOperation* operation) {
  TensorMemory& memory = g.block->tensor;
  tensor_warp_of(*g.fiber);
  g.last_pc = pc;
  for (unsigned c = 0; c < region.columns; ++c) {
    const CellAccess first{region.lane, region.column + c, use, pc, operation};
    if (!is_allocated(memory, first.column))
      stop_at_cell(Fault::out_of_bounds, first, "no tcgen05.alloc has returned this column");
    for (unsigned lane = region.lane; lane < region.lane + region.lanes; ++lane) {
      const CellAccess access{lane, first.column, use, pc, operation};
      if (lane >= kTensorLanes) stop_at_cell(Fault::out_of_bounds, access, "it has 128 lanes");
      check_cell_use(cell_at(*g.block, lane, first.column), access);
    }
  }
}

void require_unused(const TensorRegion& region, std::uintptr_t pc) {
  for (unsigned c = 0; c < region.columns; ++c) {
    for (unsigned lane = 0; lane < region.lanes; ++lane) {
      TensorCell& cell = cell_at(*g.block, lane, region.column + c);
      const CellAccess access{lane, region.column + c, TensorUse::store, pc};
      require_idle(cell, access);
      require_ordered(cell.written, true, access);
      require_ordered(cell.read, false, access);
      cell = {};
    }
  }
}

}  // namespace kopt_sim
