// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements among the lanes of a warp.
// Source: the PTX ISA. A lane's register holds two neighbours in row lane / 4 of its matrix; lanes
// 8 * m to 8 * m + 7 give the addresses of the rows of matrix m.
#include "matrix_exchange.h"

namespace kopt_sim {

namespace {

Quad element(Quad row, unsigned column) { return row >> 16 * column & 0xffffu; }

// What lanes hold in register `number`, by row and column.
Quad held(const MatrixExchange& exchange, unsigned number, unsigned row, unsigned column) {
  return element(exchange.offered[4 * row + column / 2].a, 2 * number + column % 2);
}

}  // namespace

void rows_to_lanes(unsigned code, MatrixExchange& exchange) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    Quad registers = 0;
    for (unsigned i = 0; i < 2 * code_count(code); ++i) {
      unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
      if (code_transposed(code)) std::swap(row, column);
      registers |= element(exchange.offered[i / 2 * 8 + row].a, column) << 16 * i;
    }
    exchange.results[lane] = registers;
  }
}

void lanes_to_rows(unsigned code, MatrixExchange& exchange) {
  for (unsigned lane = 0; lane < 8 * code_count(code); ++lane) {
    Quad row = 0;
    for (unsigned i = 0; i < 8; ++i)
      row |= (code_transposed(code) ? held(exchange, lane / 8, i, lane % 8)
                                    : held(exchange, lane / 8, lane % 8, i))
             << 16 * i;
    exchange.results[lane] = row;
  }
}

void transpose_lanes(MatrixExchange& exchange) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned row = lane / 4, column = lane % 4 * 2;
    exchange.results[lane] =
        held(exchange, 0, column, row) | held(exchange, 0, column + 1, row) << 16;
  }
}

}  // namespace kopt_sim
