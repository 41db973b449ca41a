// The sums of one product of a warpgroup: D = A * B + D of m64nNk32-bytes, and back to the registers.
// Source of the layouts: the PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma:
// warp w of the four has rows 16 * w on, its registers of A and D lie as those of mma.sync.
#include <cstring>

#include "element_values.h"
#include "state.h"
#include "warpgroup.h"

namespace kopt_sim {

namespace {

constexpr unsigned kProductRows = 64, kMostColumns = 256, kMostDepth = 32;

double left[kProductRows][kMostDepth];
double right[kMostDepth][kMostColumns];
double total[kProductRows][kMostColumns];

// Calls take(register, shift, row, column) for each sum that a thread has.
template <class Take>
void each_sum(unsigned thread, const WarpgroupProduct& product, Take take) {
  const bool halves = code_c(product.code) == Element::kF16;
  const unsigned lane = thread % 32, first = thread / 32 * 16 + lane / 4;
  for (unsigned i = 0; i < product.columns / 2; ++i) {
    const unsigned row = first + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (halves) take(i / 2, i % 2 * 16, row, column);
    else take(i, 0u, row, column);
  }
}

void gather_left(const Warpgroup& warpgroup, const ProductInFlight& in_flight) {
  const WarpgroupProduct& product = *warpgroup.given[0];
  const Element element = code_a(product.code);
  const double sign = product.negates_a ? -1.0 : 1.0;
  const auto take = [&](std::uint32_t bits, unsigned row, unsigned k) {
    left[row][k] = sign * value_of(element, bits);
  };
  if (product.a_is_shared)
    return each_of_matrix(in_flight.pieces.data(), extent_of_a(product), bits_of(element), take);
  for (unsigned thread = 0; thread < kWarpgroup; ++thread)
    each_element(warpgroup.given[thread]->a_registers, 4, bits_of(element), thread % 32, true,
                 [&](std::uint32_t bits, unsigned row, unsigned k) {
                   take(bits, thread / 32 * 16 + row, k);
                 });
}

void gather_right(const WarpgroupProduct& product, const ProductInFlight& in_flight) {
  const Element element = code_b(product.code);
  const double sign = product.negates_b ? -1.0 : 1.0;
  const std::size_t of_left = product.a_is_shared ? 128 : 0;
  each_of_matrix(in_flight.pieces.data() + of_left, extent_of_b(product), bits_of(element),
                 [&](std::uint32_t bits, unsigned column, unsigned k) {
                   right[k][column] = sign * value_of(element, bits);
                 });
}

}  // namespace

MatrixExtent extent_of_a(const WarpgroupProduct& product) {
  return {kProductRows, code_k(product.code), bits_of(code_a(product.code)), product.transposes_a};
}

MatrixExtent extent_of_b(const WarpgroupProduct& product) {
  return {product.columns, code_k(product.code), bits_of(code_b(product.code)),
          product.transposes_b};
}

unsigned sum_registers(const WarpgroupProduct& product) {
  return product.columns / (code_c(product.code) == Element::kF16 ? 4 : 2);
}

void multiply(const Warpgroup& warpgroup, const std::vector<std::uint32_t>& before,
              ProductInFlight& in_flight) {
  const WarpgroupProduct& product = *warpgroup.given[0];
  const Element element = code_c(product.code);
  const unsigned count = sum_registers(product);
  gather_left(warpgroup, in_flight);
  gather_right(product, in_flight);
  for (auto& row : total) std::fill(row, row + product.columns, 0.0);
  for (unsigned thread = 0; product.accumulates && thread < kWarpgroup; ++thread)
    each_sum(thread, product, [&](unsigned number, unsigned shift, unsigned row, unsigned column) {
      total[row][column] = sum_value(element, before[thread * count + number] >> shift);
    });
  for (unsigned row = 0; row < kProductRows; ++row)
    for (unsigned k = 0; k < code_k(product.code); ++k)
      for (unsigned column = 0; column < product.columns; ++column)
        total[row][column] += left[row][k] * right[k][column];
  in_flight.sums.assign(kWarpgroup * count, 0);
  for (unsigned thread = 0; thread < kWarpgroup; ++thread)
    each_sum(thread, product, [&](unsigned number, unsigned shift, unsigned row, unsigned column) {
      in_flight.sums[thread * count + number] |=
          sum_bits(total[row][column], element, code_saturates(product.code)) << shift;
    });
}

}  // namespace kopt_sim
