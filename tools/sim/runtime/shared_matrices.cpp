// Matrices in shared memory that products read by descriptors, and what must hold while they do:
// what threads stored there is behind a fence of the async proxy, and nothing stores there before
// the product was waited for. Source of the layouts: the PTX ISA, "Asynchronous Warpgroup Level
// Matrix Shared Memory Layout", "Strides", and "Shared Memory Layout and Swizzling" of tcgen05; rows
// and columns of 16 bytes there are pieces here.
#include "shared_matrices.h"

#include <cstdio>

#include "plain_accesses.h"
#include "shared_space.h"

namespace kopt_sim {

namespace {

std::size_t reader_place(std::uintptr_t address) {
  return to_shared_space(address) / kPieceBytes;
}

}  // namespace

void add_pieces(const SharedMatrix& matrix, const MatrixExtent& extent,
                std::vector<std::uintptr_t>& pieces) {
  const unsigned wide = matrix.swizzle / kPieceBytes;  // pieces of a row of the pattern
  if (!extent.transposed) {
    const std::uintptr_t next = wide == 1 ? matrix.leading : kPieceBytes;
    for (unsigned line = 0; line < extent.lines; ++line) {
      const std::uintptr_t row = line % kRowsOfPattern * matrix.swizzle +
                                 line / kRowsOfPattern * matrix.stride;
      for (unsigned i = 0; i < extent.depth / extent.each(); ++i)
        pieces.push_back(matrix.piece(row + i * next));
    }
    return;
  }
  // Without a swizzle the two offsets change places.
  const std::uintptr_t along_k = wide == 1 ? matrix.leading : matrix.stride;
  const std::uintptr_t along_lines = wide == 1 ? matrix.stride : matrix.leading;
  for (unsigned some = 0; some < extent.lines / extent.each(); ++some) {
    const std::uintptr_t first = some % wide * kPieceBytes + some / wide * along_lines;
    for (unsigned k = 0; k < extent.depth; ++k)
      pieces.push_back(matrix.piece(first + k % kRowsOfPattern * matrix.swizzle +
                                    k / kRowsOfPattern * along_k));
  }
}

void read_pieces(const std::vector<std::uintptr_t>& pieces, std::uintptr_t pc, bool starts) {
  g.last_pc = pc;
  for (const std::uintptr_t piece : pieces) {
    const Access access{piece, pc, nullptr, 0, 0, kPieceBytes, false};
    const bool plain = !is_second_look() && is_plain_shared(piece, kPieceBytes, false, true, pc);
    if (!plain && !check_shared(access, true)) stop_near_shared(access);
    if (starts) require_proxy_fence(reinterpret_cast<void*>(piece), kPieceBytes, pc);
  }
}

void keep_pieces(Block& block, const std::vector<std::uintptr_t>& pieces) {
  block.operand_readers.resize(kSharedSpace / kPieceBytes * 2);
  for (const std::uintptr_t piece : pieces) ++block.operand_readers[reader_place(piece)];
  ++block.products_in_flight;
}

void release_pieces(Block& block, const std::vector<std::uintptr_t>& pieces) {
  for (const std::uintptr_t piece : pieces) --block.operand_readers[reader_place(piece)];
  --block.products_in_flight;
}

void require_unread(const Block& owner, std::uintptr_t address, unsigned bytes, std::uintptr_t pc) {
  if (owner.products_in_flight == 0 || bytes == 0) return;
  const std::size_t last = reader_place(address + bytes - 1);
  for (std::size_t place = reader_place(address); place <= last; ++place) {
    if (place >= owner.operand_readers.size() || owner.operand_readers[place] == 0) continue;
    Access access{address, pc, nullptr, 0, 0, bytes, true};
    if (const SharedVariable* variable = find_shared(address)) {
      access.variable = variable->name;
      access.variable_bytes = variable->bytes;
      access.offset = address - variable->address;
    }
    FaultRecord record = describe_access(Fault::data_race, access);
    std::snprintf(record.note, sizeof record.note, "%s",
                  owner.warpgroups.empty()
                      ? "a tcgen05.mma or .cp under way still reads it: tcgen05.commit and a wait "
                        "for its mbarrier must come before"
                      : "a wgmma.mma_async under way still reads it: wgmma.wait_group must come "
                        "before");
    stop_with(record);
  }
}

}  // namespace kopt_sim
