// The product of one mma.sync: the registers of 32 lanes as matrices, D = A * B + C, and back.
// Source of the layouts: the PTX ISA, "Matrix Fragments for mma", which are one formula: a register
// holds neighbours along k, those of lane 4 * g + t in row (of B: column) g, and registers go down 8
// rows first, then along k.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "element_values.h"
#include "matrix_exchange.h"

namespace kopt_sim {

namespace {

constexpr unsigned kRows = 16, kColumns = 8, kDepth = 32;

// All but f64: products of two elements and sums of 33 such are exact in a double, or nearly.
struct Operands {
  double a[kRows][kDepth];
  double b[kDepth][kColumns];
  double c[kRows][kColumns];
};

// Calls take(i, row, column) for the four elements of C or D that a lane has.
template <class Take>
void each_of_c(unsigned lane, Take take) {
  for (unsigned i = 0; i < 4; ++i) take(i, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
}

double c_value(Element element, Quad registers, unsigned i) {
  switch (element) {
    case Element::kF16: return half_value(word(registers, i / 2) >> i % 2 * 16 & 0xffffu);
    case Element::kF32: return as_float(word(registers, i));
    default: return static_cast<std::int32_t>(word(registers, i));
  }
}

std::uint32_t d_bits(double value, unsigned code) {
  return sum_bits(value, code_c(code), code_saturates(code));
}

void gather(unsigned code, const MatrixExchange& exchange, Operands& all) {
  const unsigned bits = bits_of(code_a(code)), b_count = code_k(code) * bits / 128;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const MatrixOffer& offer = exchange.offered[lane];
    each_element(offer.a, 2 * b_count, bits, lane, true,
                 [&](std::uint32_t element, unsigned row, unsigned k) {
                   all.a[row][k] = value_of(code_a(code), element);
                 });
    each_element(offer.b, b_count, bits, lane, false,
                 [&](std::uint32_t element, unsigned column, unsigned k) {
                   all.b[k][column] = value_of(code_b(code), element);
                 });
    each_of_c(lane, [&](unsigned i, unsigned row, unsigned column) {
      all.c[row][column] = c_value(code_c(code), offer.c, i);
    });
  }
}

// Of doubles, m8n8k4: a chain of fused multiply-adds that begins with C.
void multiply_doubles(MatrixExchange& exchange) {
  const auto number = [](Quad registers, unsigned i) {
    const auto bits = static_cast<std::uint64_t>(registers >> 64 * i);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    double sums[2];
    for (unsigned i = 0; i < 2; ++i) {
      sums[i] = number(exchange.offered[lane].c, i);
      for (unsigned k = 0; k < 4; ++k) {
        const unsigned row = lane / 4 * 4, column = (lane % 4 * 2 + i) * 4;
        sums[i] = std::fma(number(exchange.offered[row + k].a, 0),
                           number(exchange.offered[column + k].b, 0), sums[i]);
      }
    }
    std::memcpy(&exchange.results[lane], sums, sizeof sums);
  }
}

}  // namespace

void multiply_tiles(unsigned code, MatrixExchange& exchange) {
  if (code_a(code) == Element::kF64) return multiply_doubles(exchange);
  if (code_k(code) > kDepth) std::abort();  // no instruction has such a tile
  Operands all;
  gather(code, exchange, all);
  for (unsigned k = 0; k < code_k(code); ++k)
    for (unsigned row = 0; row < kRows; ++row)
      for (unsigned column = 0; column < kColumns; ++column)
        all.c[row][column] += all.a[row][k] * all.b[k][column];
  const unsigned width = code_c(code) == Element::kF16 ? 16 : 32;
  for (unsigned lane = 0; lane < 32; ++lane) {
    Quad registers = 0;
    each_of_c(lane, [&](unsigned i, unsigned row, unsigned column) {
      registers |= Quad{d_bits(all.c[row][column], code)} << width * i;
    });
    exchange.results[lane] = registers;
  }
}

}  // namespace kopt_sim
