// The instructions of tcgen05 that all lanes of a warp meet at, and the fences of single threads.
#include "../include/kopt_sim/runtime_interface.h"
#include "race_detector.h"
#include "tensor_memory.h"

namespace kopt_sim {

namespace {

Quad meet_at(TensorStep step, int line, const MatrixOffer& offer) {
  return meet(matrix_code(MatrixStep::kTensor, static_cast<unsigned>(step), false), line, offer);
}

[[noreturn]] void stop_unlike(std::uintptr_t pc) {
  FaultRecord record = describe_fault(Fault::barrier_divergence, pc);
  std::snprintf(record.note, sizeof record.note,
                "lanes of a warp give different columns or addresses to one tcgen05 instruction");
  stop_with(record);
}

// What all lanes give.
const MatrixOffer& offer_of_all(const MatrixExchange& exchange) {
  for (const MatrixOffer& one : exchange.offered)
    if (one.a != exchange.offered[0].a || one.c != exchange.offered[0].c)
      stop_unlike(static_cast<std::uintptr_t>(one.b));
  return exchange.offered[0];
}

void end_moves(std::vector<std::uint32_t>& numbers, bool are_stores) {
  for (const std::uint32_t number : numbers) {
    TensorCell& cell = g.block->tensor.cells[number];
    --(are_stores ? cell.storing : cell.loading);
    Stamp& stamp = are_stores ? cell.written : cell.read;
    if (stamp != 0) stamp = with_epoch(stamp, stamp_epoch(g.stamp));  // it may end as late as here
  }
  numbers.clear();
}

}  // namespace

void do_tensor_step(unsigned code, MatrixExchange& exchange) {
  TensorWarp& warp = tensor_warp_of(*g.fiber);
  const auto step = static_cast<TensorStep>(code_count(code));
  if (step == TensorStep::move) return move_cells(exchange);
  const MatrixOffer& offer = offer_of_all(exchange);
  const auto columns = static_cast<unsigned>(offer.a);
  const auto pc = static_cast<std::uintptr_t>(offer.b);
  switch (step) {
    case TensorStep::allocate: {
      const unsigned column = allocate_columns(columns, g.fiber->line, pc);
      for (Quad& result : exchange.results) result = column;
      return;
    }
    case TensorStep::free: return free_columns(static_cast<std::uint32_t>(offer.c), columns, pc);
    case TensorStep::relinquish: g.block->tensor.relinquished = true; return;
    case TensorStep::wait_loads: return end_moves(warp.loads, false);
    default: return end_moves(warp.stores, true);
  }
}

}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

// A warp that finds no room waits for another one's tcgen05.dealloc.
void kopt_sim_tensor_allocate(void* shared, unsigned columns, int line) {
  std::uint32_t column = kTensorColumns;
  for (;;) {
    column = static_cast<std::uint32_t>(meet_at(TensorStep::allocate, line, {columns, CALLER, 0}));
    if (column != kTensorColumns) break;
    if (has_room(columns)) continue;  // since this lane was told that there is none
    g.fiber->wait = Wait::tensor_memory;
    return_to_scheduler();
  }
  if (g.fiber->linear % 32 == 0) {
    check_store(shared, sizeof column, CALLER);
    std::memcpy(shared, &column, sizeof column);
  }
  kopt_sim_sync_warp(~0u, line);  // all its lanes may read the address now
}

void kopt_sim_tensor_free(unsigned address, unsigned columns, int line) {
  meet_at(TensorStep::free, line, {columns, CALLER, address});
}

void kopt_sim_tensor_relinquish(int line) { meet_at(TensorStep::relinquish, line, {0, CALLER, 0}); }

void kopt_sim_tensor_move(const TensorMove* move, int line) {
  meet_at(TensorStep::move, line, {reinterpret_cast<std::uintptr_t>(move), CALLER, 0});
}

void kopt_sim_tensor_wait(bool for_stores, int line) {
  meet_at(for_stores ? TensorStep::wait_stores : TensorStep::wait_loads, line, {0, CALLER, 0});
}

void kopt_sim_tensor_fence(bool after) {
  TensorWarp& warp = tensor_warp_of(*g.fiber);
  (after ? warp.fenced_after : warp.fenced_before) = stamp_epoch(g.stamp) + 1;
}
}
