// tcgen05.cp: rows of shared memory to the lanes of tensor memory, some of them to several quarters.
// Source: the PTX ISA, sections 9.7.16.2.3 and 9.7.16.9.2.
#include <cstdio>
#include <cstring>

#include "race_detector.h"
#include "tensor_product.h"

namespace kopt_sim {

namespace {

constexpr unsigned kQuarterRows = 32, kCellsOfPiece = 4;

// The rows that a quarter of the lanes gets, by their 32.
unsigned part_of(const TensorCopy& copy, unsigned quarter) {
  const unsigned parts = copy.rows / kQuarterRows;
  return parts == 2 && copy.pairs_next ? quarter / 2 : quarter % parts;
}

void copy_row(const TensorCopy& copy, const std::uintptr_t* pieces, unsigned lane) {
  for (unsigned c = 0; c < copy.bits / 32; ++c) {
    const std::uintptr_t word = pieces[c / kCellsOfPiece] + c % kCellsOfPiece * 4;
    std::memcpy(&cell_at(*g.block, lane, (copy.address & 0xffffu) + c).word,
                reinterpret_cast<const void*>(word), 4);
  }
}

}  // namespace

void start_tensor_copy(const TensorCopy& copy, std::uintptr_t pc) {
  if ((copy.address >> 16 & 0x3fffu) != 0) {
    FaultRecord record = describe_fault(Fault::out_of_bounds, pc);
    record.is_store = true;
    std::snprintf(record.note, sizeof record.note,
                  "lane %u of tensor memory: tcgen05.cp writes all lanes, from 0 on",
                  copy.address >> 16);
    stop_with(record);
  }
  TensorOperation operation{};
  operation.issuer = g.fiber->linear;
  operation.pc = pc;
  operation.written = {{0, kTensorLanes, copy.address & 0xffffu, copy.bits / 32}};
  add_pieces(tensor_matrix(copy.source, pc), {copy.rows, copy.bits / 8, 8, false},
             operation.pieces);
  const std::vector<std::uintptr_t> pieces = operation.pieces;
  begin_operation(std::move(operation));
  const unsigned of_row = copy.bits / 128;
  for (unsigned lane = 0; lane < kTensorLanes; ++lane) {
    const unsigned row = part_of(copy, lane / kQuarterRows) * kQuarterRows + lane % kQuarterRows;
    copy_row(copy, &pieces[row * of_row], lane);
  }
}

}  // namespace kopt_sim
