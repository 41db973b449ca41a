// Matrices in shared memory that tensor cores read by descriptors, in pieces of 16 bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "matrix_exchange.h"

namespace kopt_sim {

struct Block;

constexpr unsigned kPieceBytes = 16, kRowsOfPattern = 8;

// What a descriptor says.
struct SharedMatrix {
  std::uintptr_t start;            // pointer
  std::uintptr_t leading, stride;  // bytes
  unsigned swizzle;                // bytes: 16 for none, 32, 64, 128
  unsigned base_offset;

  std::uintptr_t piece(std::uintptr_t offset) const {
    const std::uintptr_t address = start + offset, rows = swizzle / kPieceBytes - 1;
    return address ^ (((address >> 7) - base_offset) & rows) << 4;
  }
};

struct MatrixExtent {
  unsigned lines;   // rows of A, columns of B
  unsigned depth;   // along k: 32 bytes, of what is only copied also 16
  unsigned bits;    // of the place of an element; elements of 4 and 6 bits take 8 on average
  bool transposed;  // neighbours lie along the lines

  unsigned each() const { return 128 / bits; }  // elements of a piece
  unsigned count() const { return lines * depth / each(); }  // pieces
};

// Each row or column the pieces that it has along k; transposed, as many lines as a piece has the
// pieces of each k.
void add_pieces(const SharedMatrix& matrix, const MatrixExtent& extent,
                std::vector<std::uintptr_t>& pieces);

// Calls take(bits, line, k) for each element; `bits` is the width of one within its piece, which
// elements narrower than their places fill from the front.
template <class Take>
void each_of_matrix(const std::uintptr_t* pieces, const MatrixExtent& extent, unsigned bits,
                    Take take) {
  const unsigned each = extent.each(), mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const unsigned of_line = extent.depth / each;  // pieces
  for (unsigned i = 0; i < extent.count(); ++i) {
    Quad piece;
    std::memcpy(&piece, reinterpret_cast<const void*>(pieces[i]), sizeof piece);
    for (unsigned e = 0; e < each; ++e) {
      const auto element = static_cast<std::uint32_t>(piece >> bits * e) & mask;
      if (extent.transposed) take(element, i / extent.depth * each + e, i % extent.depth);
      else take(element, i / of_line, i % of_line * each + e);
    }
  }
}

// An address or offset of a descriptor, from its lowest bit on.
inline std::uintptr_t descriptor_field(std::uint64_t descriptor, unsigned first) {
  return (descriptor >> first & 0x3fffu) << 4;
}

// Checks the loads of the running thread, at the start of a product that it begins or at its end.
void read_pieces(const std::vector<std::uintptr_t>& pieces, std::uintptr_t pc, bool starts);
// From here on nothing may be stored there, to the release.
void keep_pieces(Block& block, const std::vector<std::uintptr_t>& pieces);
void release_pieces(Block& block, const std::vector<std::uintptr_t>& pieces);
// Ends the run if a product reads some of the shared memory of `owner` that is stored to now.
void require_unread(const Block& owner, std::uintptr_t address, unsigned bytes, std::uintptr_t pc);

}  // namespace kopt_sim
