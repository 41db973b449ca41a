// tcgen05.ld and .st: cells of tensor memory to the registers of a warp, and back. Registers are
// filled at once, as what depends on them waits by itself; that cells are still read or written is
// known until tcgen05.wait. Source of the layouts: the PTX ISA, section 9.7.16.2.3.1.
#include <cstdio>

#include "../include/kopt_sim/tensor_steps.h"
#include "race_detector.h"
#include "tensor_memory.h"

namespace kopt_sim {

namespace {

struct CellPlace {
  unsigned lane, column;  // from the address on
};

// Of register `i` of a lane; packed registers have two columns each, from twice this one on.
CellPlace place_of(const TensorMove& move, unsigned thread, unsigned i) {
  switch (move.shape) {
    case TensorShape::k16x64b: return {thread / 4 + thread % 2 * 8, thread / 2 % 2 + 2 * i};
    case TensorShape::k16x128b: return {thread / 4 + i % 2 * 8, thread % 4 + i / 2 * 4};
    case TensorShape::k16x256b:
      return {thread / 4 + i / 2 % 2 * 8, thread % 4 * 2 + i % 2 + i / 4 * 8};
    case TensorShape::k16x32bx2: return {thread % 16, i};
    default: return {thread, i};
  }
}

void stop_at_move(Fault kind, std::uintptr_t pc, bool is_store, const char* note) {
  FaultRecord record = describe_fault(kind, pc);
  record.bytes = 4;
  record.is_store = is_store;
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

// A warp reaches the quarter of the lanes that its place in its warpgroup says.
void require_quarter(const TensorMove& move, std::uintptr_t pc) {
  const unsigned lane = move.address >> 16, warp = g.fiber->linear / 32 % 4;
  const unsigned step = move.shape == TensorShape::k32x32b ? 32 : 16;
  if (lane / 32 == warp && lane % step == 0) return;
  char note[160];
  std::snprintf(note, sizeof note,
                "warp %u of the warpgroup gives lane %u of tensor memory: it reaches lanes %u to %u,"
                " from a multiple of %u on", warp, lane, warp * 32, warp * 32 + 31, step);
  stop_at_move(Fault::out_of_bounds, pc, move.is_store, note);
}

void require_alike(const MatrixExchange& exchange, const TensorMove& first, std::uintptr_t pc) {
  for (const MatrixOffer& offer : exchange.offered) {
    const auto& one = *reinterpret_cast<const TensorMove*>(static_cast<std::uintptr_t>(offer.a));
    const bool is_alike = one.address == first.address && one.split == first.split &&
                          one.shape == first.shape && one.registers == first.registers &&
                          one.packed == first.packed && one.is_store == first.is_store;
    if (!is_alike)
      stop_at_move(Fault::barrier_divergence, pc, first.is_store,
                   "lanes of a warp give different addresses or shapes to one tcgen05.ld or .st");
  }
}

void move_word(const TensorMove& move, TensorCell& cell, unsigned i, unsigned half) {
  std::uint32_t& value = move.values[i];
  if (!move.packed) {
    (move.is_store ? cell.word : value) = move.is_store ? value : cell.word;
  } else if (move.is_store) {
    cell.word = value >> 16 * half & 0xffffu;
  } else {
    value = (half == 0 ? 0 : value) | (cell.word & 0xffffu) << 16 * half;
  }
}

void move_cell(const TensorMove& move, unsigned thread, unsigned i, std::uintptr_t pc) {
  const CellPlace place = place_of(move, thread, i);
  const unsigned lane = (move.address >> 16) + place.lane, halves = move.packed ? 2 : 1;
  const unsigned second = move.shape == TensorShape::k16x32bx2 && thread >= 16 ? move.split : 0;
  TensorWarp& warp = tensor_warp_of(*g.fiber);
  for (unsigned half = 0; half < halves; ++half) {
    const unsigned column = (move.address & 0xffffu) + second + place.column * halves + half;
    use_cells({lane, 1, column, 1}, move.is_store ? TensorUse::store : TensorUse::load, pc);
    TensorCell& cell = cell_at(*g.block, lane, column);
    move_word(move, cell, i, half);
    (move.is_store ? warp.stores : warp.loads).push_back(cell_number(lane, column));
  }
}

// Under way from here to the wait. Within one instruction no cell is accessed twice.
void note_moves(bool is_store, std::size_t first) {
  const TensorWarp& warp = tensor_warp_of(*g.fiber);
  const auto& numbers = is_store ? warp.stores : warp.loads;
  for (std::size_t i = first; i < numbers.size(); ++i) {
    TensorCell& cell = g.block->tensor.cells[numbers[i]];
    ++(is_store ? cell.storing : cell.loading);
  }
}

}  // namespace

void move_cells(MatrixExchange& exchange) {
  Fiber* const self = g.fiber;
  const auto of_lane = [&](unsigned lane) -> const TensorMove& {
    return *reinterpret_cast<TensorMove*>(static_cast<std::uintptr_t>(exchange.offered[lane].a));
  };
  const TensorMove& first = of_lane(0);
  const auto pc = static_cast<std::uintptr_t>(exchange.offered[self->linear % 32].b);
  g.fiber = &g.block->fibers[self->linear & ~31u];
  refresh_stamp();
  require_alike(exchange, first, pc);
  require_quarter(first, pc);
  const TensorWarp& warp = tensor_warp_of(*g.fiber);
  const std::size_t before = (first.is_store ? warp.stores : warp.loads).size();
  for (unsigned i = 0; i < first.registers; ++i)
    for (unsigned lane = 0; lane < 32; ++lane) move_cell(of_lane(lane), lane, i, pc);
  note_moves(first.is_store, before);
  g.fiber = self;
  refresh_stamp();
}

}  // namespace kopt_sim
