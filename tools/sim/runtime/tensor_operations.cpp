// What tcgen05.mma has under way, and tcgen05.commit, which tells an mbarrier of it. A product is
// computed where it starts; until a thread waits for the mbarrier of a later commit nobody may use
// what it reads and writes, so that nobody can tell when it was.
#include <algorithm>
#include <cstdio>

#include "../include/kopt_sim/runtime_interface.h"
#include "mbarriers.h"
#include "race_detector.h"
#include "tensor_product.h"

namespace kopt_sim {

namespace {

void stop_at_operand(std::uint32_t address, std::uintptr_t pc, const char* note) {
  FaultRecord record = describe_fault(Fault::out_of_bounds, pc);
  record.bytes = 4;
  record.is_store = true;
  std::snprintf(record.note, sizeof record.note, "lane %u of tensor memory as that of a matrix: %s",
                address >> 16, note);
  stop_with(record);
}

void require_lane(const TensorShapes& shapes, const TensorProduct& product, std::uintptr_t pc) {
  const std::uint32_t lane = product.d >> 16;
  if (lane != 0 && !(shapes.rows == 64 && lane == 16))
    stop_at_operand(product.d, pc, "it begins at lane 0, or with 64 rows at 16");
  if (!product.a_is_shared && product.a >> 16 != lane)
    stop_at_operand(static_cast<std::uint32_t>(product.a), pc, "A begins at the lane where D does");
}

// The two upper bits of such an address say nothing to the instruction.
void require_scale_lane(std::uint32_t address, std::uintptr_t pc) {
  if ((address >> 16 & 0x3fffu) != 0) stop_at_operand(address, pc, "scales begin at lane 0");
}

// Rows of `columns` cells each, those of disabled lanes left out.
void add_regions(const TensorShapes& shapes, std::uint32_t address, unsigned columns,
                 const std::uint32_t* disabled, std::vector<TensorRegion>& regions) {
  for (unsigned row = 0; row < shapes.rows; ++row) {
    const unsigned lane = (address >> 16) + lane_of_row(shapes, row);
    if (disabled != nullptr && (disabled[lane / 32] >> lane % 32 & 1u) != 0) continue;
    if (!regions.empty() && regions.back().lane + regions.back().lanes == lane)
      ++regions.back().lanes;
    else
      regions.push_back({lane, 1, address & 0xffffu, columns});
  }
}

bool meet(const TensorRegion& one, const TensorRegion& other) {
  return one.lane < other.lane + other.lanes && other.lane < one.lane + one.lanes &&
         one.column < other.column + other.columns && other.column < one.column + one.columns;
}

// A and the scales are read while results are written.
void require_apart(const TensorOperation& operation) {
  for (const TensorRegion& read : operation.read)
    for (const TensorRegion& written : operation.written) {
      if (!meet(read, written)) continue;
      FaultRecord record = describe_fault(Fault::data_race, operation.pc);
      record.bytes = 4;
      std::snprintf(record.note, sizeof record.note,
                    "lane %u, column %u of tensor memory: one tcgen05.mma reads it, as A or as "
                    "scales, and writes it",
                    std::max(read.lane, written.lane), std::max(read.column, written.column));
      stop_with(record);
    }
}

void start_tensor_product(const TensorProduct& product, std::uintptr_t pc) {
  const TensorShapes shapes = shapes_of(product, pc);
  require_lane(shapes, product, pc);
  TensorOperation operation{};
  operation.issuer = g.fiber->linear;
  operation.pc = pc;
  operation.is_product = true;
  operation.accumulates = product.accumulates;
  operation.accumulator = std::uint64_t{product.d} << 32 |
                          static_cast<unsigned>(product.kind) << 24 | shapes.rows << 16 |
                          shapes.columns;
  if (product.a_is_shared)
    add_pieces(tensor_matrix(product.a, pc), shapes.extent_of_a(), operation.pieces);
  else
    add_regions(shapes, static_cast<std::uint32_t>(product.a),
                shapes.depth * shapes.place_bits(shapes.a) / 32, nullptr, operation.read);
  add_pieces(tensor_matrix(product.b, pc), shapes.extent_of_b(), operation.pieces);
  add_regions(shapes, product.d, shapes.columns, product.disabled, operation.written);
  if (product.scales != 0) {
    scales_of(product, pc);
    for (const auto& [address, lines] : {std::pair{product.scale_a, shapes.rows},
                                         std::pair{product.scale_b, shapes.columns}}) {
      require_scale_lane(address, pc);
      add_scale_regions(address, lines, operation.read);
    }
  }
  const std::vector<std::uintptr_t> pieces = operation.pieces;
  begin_operation(std::move(operation));
  multiply_cells(product, shapes, pieces);
}

void end_operation(Block& block, const TensorOperation& operation) {
  release_pieces(block, operation.pieces);
  const auto each = [&](const std::vector<TensorRegion>& regions, auto end) {
    for (const TensorRegion& region : regions)
      for (unsigned c = 0; c < region.columns; ++c)
        for (unsigned lane = region.lane; lane < region.lane + region.lanes; ++lane)
          end(cell_at(block, lane, region.column + c));
  };
  const auto later = [&block](Stamp& stamp) {
    if (stamp != 0) stamp = with_epoch(stamp, block.epoch);
  };
  each(operation.written, [&](TensorCell& cell) { --cell.writing; later(cell.written); });
  each(operation.read, [&](TensorCell& cell) { --cell.reading; later(cell.read); });
}

void commit_to(Block& target, std::uintptr_t barrier, std::uintptr_t pc) {
  find_mbarrier(target, barrier, pc);
  target.tensor.commits.push_back(
      {g.block, g.fiber->linear, g.block->tensor.operations, barrier, pc});
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = target.fibers[i];
    if (fiber.wait == Wait::mbarrier && fiber.mbarrier == barrier) fiber.wait = Wait::runnable;
  }
}

void commit_at(std::uintptr_t address, std::uintptr_t pc) {
  Block* const other = other_block_at(address);
  if (other == nullptr) return commit_to(*g.block, address, pc);
  Access access{address, pc, nullptr, 0, 0, 8, true};
  access.is_atomic = true;
  if (!check_shared(access, true)) stop_near_shared(access);
  g.fiber->fence = 2;
  publish_by_atomic(address);
  commit_to(*other, own_address_of(address), pc);
}

}  // namespace

void begin_operation(TensorOperation&& operation) {
  TensorMemory& memory = g.block->tensor;
  require_apart(operation);
  read_pieces(operation.pieces, operation.pc, true);
  operation.number = ++memory.operations;
  for (const TensorRegion& region : operation.read)
    use_cells(region, TensorUse::read, operation.pc, &operation);
  for (const TensorRegion& region : operation.written)
    use_cells(region, TensorUse::write, operation.pc, &operation);
  keep_pieces(*g.block, operation.pieces);
  memory.under_way.push_back(std::move(operation));
}

void end_operations(const TensorCommit& commit) {
  auto& under_way = commit.source->tensor.under_way;
  const auto is_due = [&](const TensorOperation& one) {
    return one.issuer == commit.issuer && one.number <= commit.operations;
  };
  for (const TensorOperation& one : under_way)
    if (is_due(one)) end_operation(*commit.source, one);
  under_way.erase(std::remove_if(under_way.begin(), under_way.end(), is_due), under_way.end());
}

}  // namespace kopt_sim

using namespace kopt_sim;

// In place of a mask of blocks: the barrier that is named, and no other.
constexpr unsigned kOwnBarrier = ~0u;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_tensor_product(const TensorProduct* product) {
  settle_pending_write();
  start_tensor_product(*product, CALLER);
}

void kopt_sim_tensor_copy(const TensorCopy* copy) {
  settle_pending_write();
  start_tensor_copy(*copy, CALLER);
}

void kopt_sim_tensor_commit(void* barrier, unsigned targets, int line) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  if (targets == kOwnBarrier) return commit_at(address, CALLER);
  for (std::uint32_t rest = targets; rest != 0; rest &= rest - 1) {
    void* const there = kopt_sim_map_shared(barrier, static_cast<unsigned>(__builtin_ctz(rest)), line);
    commit_at(reinterpret_cast<std::uintptr_t>(there), CALLER);
  }
}
}
