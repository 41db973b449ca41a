// Matrices in shared memory that a product of a warpgroup reads by descriptors: all its warps do.
#include <cstdio>

#include "race_detector.h"
#include "shared_space.h"
#include "warpgroup.h"

namespace kopt_sim {

namespace {

constexpr std::uint64_t kReserved = 0x3ff1'c000'c000'c000;

}  // namespace

SharedMatrix warpgroup_matrix(std::uint64_t descriptor, std::uintptr_t pc) {
  if ((descriptor & kReserved) != 0) {
    FaultRecord record = describe_fault(Fault::crash, pc);
    std::snprintf(record.note, sizeof record.note,
                  "the matrix descriptor 0x%016llx has bits that must be 0 (14-15, 30-31, 46-48, "
                  "52-61): each address and offset is (x & 0x3ffff) >> 4",
                  static_cast<unsigned long long>(descriptor));
    stop_with(record);
  }
  constexpr unsigned kSwizzles[] = {16, 128, 64, 32};
  return {from_shared_space(descriptor_field(descriptor, 0)), descriptor_field(descriptor, 16),
          descriptor_field(descriptor, 32), kSwizzles[descriptor >> 62], static_cast<unsigned>(descriptor >> 49 & 7u)};
}

void read_operands(const Fiber* first, const ProductInFlight& product, bool starts) {
  Fiber* const self = g.fiber;
  const std::uint64_t counted = g.report->shared_load_bytes;
  for (unsigned warp = 0; warp < kWarpgroup / 32; ++warp) {
    g.fiber = const_cast<Fiber*>(first) + 32 * warp;
    refresh_stamp();
    read_pieces(product.pieces, product.pc, starts);
  }
  g.fiber = self;
  refresh_stamp();
  g.report->shared_load_bytes = counted + (starts ? product.pieces.size() * kPieceBytes : 0);
}

}  // namespace kopt_sim
