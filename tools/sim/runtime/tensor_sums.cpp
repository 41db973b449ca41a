// The sums of one tcgen05.mma: D = A * B + D in tensor memory. Source of where its elements lie: the
// PTX ISA, sections 9.7.16.10.4 (packing) and 9.7.16.10.5 (layouts D and F).
#include <algorithm>
#include <cmath>

#include "element_values.h"
#include "state.h"
#include "tensor_product.h"

namespace kopt_sim {

namespace {

constexpr unsigned kMostRows = 128, kMostSums = 256, kMostTerms = 64, kMostScales = 4;

double a_values[kMostRows][kMostTerms];
double b_values[kMostTerms][kMostSums];
double b_scales[4][kMostScales][kMostSums];  // by quarter of the lanes

std::uint32_t cell_word(unsigned lane, std::uint32_t column) {
  return cell_at(*g.block, lane, column).word;
}

void gather_a(const TensorProduct& product, const TensorShapes& shapes,
              const std::vector<std::uintptr_t>& pieces) {
  const double sign = shapes.negates_a ? -1.0 : 1.0;
  const unsigned bits = bits_of(shapes.a), each = 32 / shapes.place_bits(shapes.a);
  if (product.a_is_shared)
    return each_of_matrix(pieces.data(), shapes.extent_of_a(), bits,
                          [&](std::uint32_t element, unsigned row, unsigned k) {
                            a_values[row][k] = sign * value_of(shapes.a, element);
                          });
  const auto lane = static_cast<unsigned>(product.a >> 16);
  const std::uint32_t column = product.a & 0xffffu, mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned row = 0; row < shapes.rows; ++row)
    for (unsigned k = 0; k < shapes.depth; ++k) {
      const std::uint32_t word = cell_word(lane + lane_of_row(shapes, row), column + k / each);
      a_values[row][k] = sign * value_of(shapes.a, word >> bits * (k % each) & mask);
    }
}

void gather_b(const TensorProduct& product, const TensorShapes& shapes,
              const std::vector<std::uintptr_t>& pieces) {
  const double sign = shapes.negates_b ? -1.0 : 1.0;
  const std::size_t of_a = product.a_is_shared ? shapes.extent_of_a().count() : 0;
  each_of_matrix(pieces.data() + of_a, shapes.extent_of_b(), bits_of(shapes.b),
                 [&](std::uint32_t element, unsigned column, unsigned k) {
                   b_values[k][column] = sign * value_of(shapes.b, element);
                 });
}

// The scales of A become part of it: a row lies in one quarter of the lanes.
void gather_scales(const TensorProduct& product, const TensorShapes& shapes,
                   const TensorScales& scales) {
  const unsigned block = shapes.depth / scales.count;
  for (unsigned row = 0; row < shapes.rows; ++row)
    for (unsigned k = 0; k < shapes.depth; ++k)
      a_values[row][k] *=
          scale_at({product.scale_a, row / 32, row, scales.first_a + k / block}, scales);
  for (unsigned quarter = 0; quarter < 4; ++quarter)
    for (unsigned i = 0; i < scales.count; ++i)
      for (unsigned n = 0; n < shapes.columns; ++n)
        b_scales[quarter][i][n] = scale_at({product.scale_b, quarter, n, scales.first_b + i}, scales);
}

void add_scaled(const TensorProduct& product, const TensorShapes& shapes, unsigned row, double* sums) {
  const unsigned block = shapes.depth / product.scales;
  for (unsigned k = 0; k < shapes.depth; ++k)
    for (unsigned n = 0; n < shapes.columns; ++n)
      sums[n] += a_values[row][k] * (b_values[k][n] * b_scales[row / 32][k / block][n]);
}

void multiply_row(const TensorProduct& product, const TensorShapes& shapes, unsigned row) {
  const unsigned lane = (product.d >> 16) + lane_of_row(shapes, row), column = product.d & 0xffffu;
  if ((product.disabled[lane / 32] >> lane % 32 & 1u) != 0) return;
  const double scale = std::ldexp(1.0, -static_cast<int>(product.halvings));
  double sums[kMostSums] = {};
  for (unsigned n = 0; product.accumulates && n < shapes.columns; ++n)
    sums[n] = scale * sum_value(shapes.d, cell_word(lane, column + n));
  if (product.scales != 0) add_scaled(product, shapes, row, sums);
  for (unsigned k = 0; product.scales == 0 && k < shapes.depth; ++k)
    for (unsigned n = 0; n < shapes.columns; ++n) sums[n] += a_values[row][k] * b_values[k][n];
  for (unsigned n = 0; n < shapes.columns; ++n)
    cell_at(*g.block, lane, column + n).word = sum_bits(sums[n], shapes.d, shapes.saturates);
}

}  // namespace

void multiply_cells(const TensorProduct& product, const TensorShapes& shapes,
                    const std::vector<std::uintptr_t>& pieces) {
  gather_a(product, shapes, pieces);
  gather_b(product, shapes, pieces);
  if (product.scales != 0) gather_scales(product, shapes, scales_of(product, 0));
  for (unsigned row = 0; row < shapes.rows; ++row) multiply_row(product, shapes, row);
}

}  // namespace kopt_sim
