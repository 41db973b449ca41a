// tcgen05.mma of one block: what its instruction descriptor and its operands say.
#pragma once

#include <vector>

#include "../include/kopt_sim/tensor_steps.h"
#include "element_values.h"
#include "shared_matrices.h"
#include "tensor_memory.h"

namespace kopt_sim {

struct TensorShapes {
  unsigned rows, columns, depth;
  Element a, b, d;
  bool negates_a, negates_b, transposes_a, transposes_b, saturates;
  bool packs = false;  // elements of 4 bits lie side by side

  unsigned place_bits(Element element) const {  // of an element in memory
    return bits_of(element) < 8 && !packs ? 8 : bits_of(element);
  }
  MatrixExtent extent_of_a() const { return {rows, depth, place_bits(a), transposes_a}; }
  MatrixExtent extent_of_b() const { return {columns, depth, place_bits(b), transposes_b}; }
};

struct TensorScales {
  unsigned count;             // of each row or column
  unsigned first_a, first_b;  // bytes of a word
  bool are_powers;            // ue8m0, else ue4m3
};

struct ScalePlace {
  std::uint32_t address;
  unsigned quarter, line, byte;
};

// tensor_scales.cpp
TensorShapes scaled_shapes_of(const TensorProduct& product, std::uintptr_t pc);
TensorScales scales_of(const TensorProduct& product, std::uintptr_t pc);
void add_scale_regions(std::uint32_t address, unsigned lines, std::vector<TensorRegion>& regions);
double scale_at(const ScalePlace& place, const TensorScales& scales);

// tensor_copies.cpp
void start_tensor_copy(const TensorCopy& copy, std::uintptr_t pc);

// tensor_operations.cpp. Checks what it reads and writes, which is in use from here on.
void begin_operation(TensorOperation&& operation);

// tensor_shapes.cpp. Both end the run where a descriptor says what no product has.
TensorShapes shapes_of(const TensorProduct& product, std::uintptr_t pc);
SharedMatrix tensor_matrix(std::uint64_t descriptor, std::uintptr_t pc);
// The lane of a row of D, and of A in tensor memory: 64 rows lie in half of each quarter.
inline unsigned lane_of_row(const TensorShapes& shapes, unsigned row) {
  return shapes.rows == 64 ? row / 16 * 32 + row % 16 : row;
}

// tensor_sums.cpp. D = A * B + D, all at once.
void multiply_cells(const TensorProduct& product, const TensorShapes& shapes,
                    const std::vector<std::uintptr_t>& pieces);

}  // namespace kopt_sim
