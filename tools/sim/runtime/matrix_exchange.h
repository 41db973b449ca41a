// What the lanes of a warp hand in at a matrix instruction, and what each gets back.
#pragma once

#include <cstdint>
#include <utility>

#include "../include/kopt_sim/matrix_code.h"

namespace kopt_sim {

using Quad = unsigned __int128;  // four registers of 32 bits, the first one lowest

struct MatrixOffer {
  Quad a, b, c;
};

// A lane gives its next offer only after all have met, and all meet again only after each has read
// its result: one of each is enough.
struct MatrixExchange {
  MatrixOffer offered[32];
  Quad results[32];
};

// matrix_exchange.cpp. Waits for all 32 lanes, does the step for all once, and returns the lane's result.
Quad meet(unsigned code, int line, const MatrixOffer& offer);

// mma_tile.cpp
void multiply_tiles(unsigned code, MatrixExchange& exchange);

// matrix_moves.cpp: rows of eight 16-bit elements to the lanes that hold them, and back.
void rows_to_lanes(unsigned code, MatrixExchange& exchange);
void lanes_to_rows(unsigned code, MatrixExchange& exchange);
void transpose_lanes(MatrixExchange& exchange);

}  // namespace kopt_sim
