// What threads hand to the runtime at tcgen05 instructions: written by lowered PTX.
#pragma once

#include <cstdint>

namespace kopt_sim {

enum class TensorShape : unsigned { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

// tcgen05.ld or .st, of one lane.
struct TensorMove {
  TensorShape shape;
  unsigned registers;
  bool packed;  // each register holds the lower halves of two columns
  bool is_store;
  std::uint32_t address;
  std::uint32_t split;  // columns between the two accesses of 16x32bx2
  std::uint32_t* values;
};

enum class TensorKind : unsigned { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };

// tcgen05.mma, which one thread starts.
struct TensorProduct {
  TensorKind kind;
  bool a_is_shared;
  bool accumulates;       // enable-input-d
  unsigned halvings;      // of D before: scale-input-d
  std::uint32_t d;        // in tensor memory
  std::uint64_t a;        // a descriptor, or where it lies in tensor memory
  std::uint64_t b;
  std::uint32_t instruction;   // its descriptor
  std::uint32_t disabled[4];   // lanes of D that stay as they are
  unsigned scales;             // of each row of A and column of B; 0: none
  std::uint32_t scale_a, scale_b;  // where they lie in tensor memory
};

// tcgen05.cp, which one thread starts: rows of `bits` each, to the lanes of the quarters by pairs.
struct TensorCopy {
  unsigned rows, bits;
  bool pairs_next;        // 64 rows: quarters 0 and 1 get the first half, not 0 and 2
  std::uint32_t address;  // in tensor memory
  std::uint64_t source;   // a descriptor
};

}  // namespace kopt_sim
