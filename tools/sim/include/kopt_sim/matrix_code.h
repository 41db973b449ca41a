// Which matrix instruction the lanes of a warp meet at, in one word: written by lowered PTX, read
// by the runtime (runtime/matrix_exchange.cpp).
#pragma once

namespace kopt_sim {

// Names that candidates hardly give to macros of theirs.
enum class Element : unsigned {
  kF16, kBf16, kTf32, kF64, kE4m3, kE5m2, kS8, kU8, kF32, kS32,
  kE2m3, kE3m2, kE2m1
};
enum class MatrixStep : unsigned { kMultiply, kLoad, kStore, kMove, kMeet, kTensor };

// Bits of a product: 0-7 k, 8-11 elements of A, 12-15 of B, 16-19 of C and D, 20 saturating.
// Of the others: 0-7 the number of matrices, 20 transposed. 24-27 the step.
constexpr unsigned mma_code(unsigned k, Element a, Element b, Element c, bool saturates) {
  return k | static_cast<unsigned>(a) << 8 | static_cast<unsigned>(b) << 12 |
         static_cast<unsigned>(c) << 16 | unsigned{saturates} << 20;
}
constexpr unsigned matrix_code(MatrixStep step, unsigned count, bool transposed) {
  return static_cast<unsigned>(step) << 24 | unsigned{transposed} << 20 | count;
}
constexpr unsigned code_count(unsigned code) { return code & 0xffu; }
constexpr bool code_transposed(unsigned code) { return code >> 20 & 1u; }
constexpr unsigned code_k(unsigned code) { return code & 0xffu; }
constexpr Element code_a(unsigned code) { return static_cast<Element>(code >> 8 & 15u); }
constexpr Element code_b(unsigned code) { return static_cast<Element>(code >> 12 & 15u); }
constexpr Element code_c(unsigned code) { return static_cast<Element>(code >> 16 & 15u); }
constexpr bool code_saturates(unsigned code) { return code >> 20 & 1u; }
constexpr MatrixStep code_step(unsigned code) { return static_cast<MatrixStep>(code >> 24); }

}  // namespace kopt_sim
