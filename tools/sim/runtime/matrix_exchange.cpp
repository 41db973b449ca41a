// Matrix instructions: all 32 lanes of a warp must come to the same one, at the same line.
#include <cstring>

#include "race_detector.h"

namespace kopt_sim {

namespace {

bool all_met(const Warp& warp, const Fiber& self) {
  if (warp.alive != ~0u) return false;  // those that have ended, or never were, do not come
  const Fiber* lanes = &g.block->fibers[self.linear & ~31u];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Fiber& other = lanes[lane];
    if (&other == &self) continue;
    if (other.wait != Wait::matrix || other.mask != self.mask || other.line != self.line)
      return false;
  }
  return true;
}

void exchange_all(unsigned code, MatrixExchange& exchange) {
  switch (code_step(code)) {
    case MatrixStep::kMultiply: return multiply_tiles(code, exchange);
    case MatrixStep::kLoad: return rows_to_lanes(code, exchange);
    case MatrixStep::kStore: return lanes_to_rows(code, exchange);
    case MatrixStep::kMove: return transpose_lanes(exchange);
    case MatrixStep::kMeet: return;
    case MatrixStep::kTensor: return do_tensor_step(code, exchange);
  }
}

}  // namespace

Quad meet(unsigned code, int line, const MatrixOffer& offer) {
  settle_pending_write();
  Fiber& self = *g.fiber;
  Warp& warp = warp_of(self);
  if (warp.matrix.empty()) warp.matrix.resize(1);
  MatrixExchange& exchange = warp.matrix.front();
  exchange.offered[self.linear % 32] = offer;
  self.mask = code;
  self.line = line;
  if (!all_met(warp, self)) {
    self.wait = Wait::matrix;
    return_to_scheduler();
  } else {
    exchange_all(code, exchange);
    Fiber* lanes = &g.block->fibers[self.linear & ~31u];
    for (unsigned lane = 0; lane < 32; ++lane) lanes[lane].wait = Wait::runnable;
  }
  return exchange.results[self.linear % 32];
}

namespace {

// Whether the running lane gives the address of a row; it must be one in shared memory.
bool gives_row(unsigned code, const void* row, bool is_store, std::uintptr_t pc) {
  if (g.fiber->linear % 32 >= 8 * code_count(code)) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  if (!is_shared(address)) stop_near_shared({address, pc, nullptr, 0, 0, sizeof(Quad), is_store});
  return true;
}

}  // namespace

}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

Quad kopt_sim_mma(unsigned code, int line, Quad a, Quad b, Quad c) {
  return meet(code, line, {a, b, c});
}

Quad kopt_sim_load_matrices(unsigned code, int line, const void* row) {
  MatrixOffer offer{};
  if (gives_row(code, row, false, CALLER)) {
    check_load(row, sizeof offer.a, CALLER);
    std::memcpy(&offer.a, row, sizeof offer.a);
  }
  return meet(code, line, offer);
}

void kopt_sim_store_matrices(unsigned code, int line, void* row, Quad registers) {
  const Quad elements = meet(code, line, {registers, 0, 0});
  if (!gives_row(code, row, true, CALLER)) return;
  check_store(row, sizeof elements, CALLER);
  std::memcpy(row, &elements, sizeof elements);
}

void kopt_sim_meet_warp(int line) { meet(matrix_code(MatrixStep::kMeet, 0, false), line, {}); }

unsigned kopt_sim_transpose_matrix(int line, unsigned elements) {
  return static_cast<unsigned>(meet(matrix_code(MatrixStep::kMove, 1, true), line, {elements, 0, 0}));
}
}
