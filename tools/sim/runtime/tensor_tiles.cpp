// Tiles of tensor maps (TMA) that PTX copies by itself: piece by piece, as bulk copies. What lies
// outside of the tensor is filled with zeros, or left out.
#include <algorithm>

#include "../include/kopt_sim/runtime_interface.h"
#include "race_detector.h"
#include "shared_space.h"

namespace kopt_sim {

namespace {

constexpr unsigned kPiece = 16;  // bytes that a swizzle moves as one
constexpr unsigned kRanks = 5;

// As job_file.py writes it.
struct TensorMap {
  std::uint64_t base;
  std::uint8_t rank, element_bytes, swizzle, fill_nan;
  std::uint8_t padding[4];
  std::uint32_t extents[kRanks];
  std::uint32_t padding2;
  std::uint64_t strides[kRanks];
  std::uint32_t box[kRanks];
  std::uint32_t element_strides[kRanks];
};

struct Piece {
  std::uintptr_t shared, global;
  unsigned bytes;
  bool inside;
};

// The bits of the address that choose among neighbours choose the neighbour otherwise in each row.
std::uintptr_t swizzled(std::uintptr_t address, unsigned swizzle) {
  const std::uintptr_t rows = swizzle == 0 ? 0 : swizzle / 16 - 1;
  return address ^ (address >> 7 & rows) << 4;
}

// Calls take(piece) along one row of the box, of which `inside` says whether its other coordinates
// lie in the tensor.
template <class Take>
void each_of_row(const TensorMap& map, std::int64_t first, Piece row, Take take) {
  const unsigned each = map.element_bytes, count = map.box[0];
  const auto is_inside = [&](unsigned i) {
    const std::int64_t at = first + i;
    return row.inside && at >= 0 && at < map.extents[0];
  };
  for (unsigned begin = 0; begin < count;) {
    unsigned end = begin + 1;
    const auto goes_on = [&] {
      const bool same = map.swizzle == 0 || end * each / kPiece == begin * each / kPiece;
      return end < count && same && is_inside(end) == is_inside(begin);
    };
    while (goes_on()) ++end;
    const std::uintptr_t place = swizzled(row.shared + begin * each, map.swizzle);
    const std::uintptr_t from = row.global + static_cast<std::uintptr_t>(first + begin) * each;
    take(Piece{place, from, (end - begin) * each, is_inside(begin)});
    begin = end;
  }
}

template <class Take>
void each_of_tile(const TensorMap& map, std::uintptr_t shared, const int* start, Take take) {
  unsigned counts[kRanks], rows = 1;
  for (unsigned d = 1; d < map.rank; ++d) {
    counts[d] = (map.box[d] + map.element_strides[d] - 1) / map.element_strides[d];
    rows *= counts[d];
  }
  for (unsigned i = 0; i < rows; ++i) {
    Piece row{shared + std::uintptr_t{i} * map.box[0] * map.element_bytes, map.base, 0, true};
    unsigned rest = i;
    for (unsigned d = 1; d < map.rank; ++d) {
      const std::int64_t at =
          start[d] + static_cast<std::int64_t>(rest % counts[d]) * map.element_strides[d];
      rest /= counts[d];
      row.inside = row.inside && at >= 0 && at < map.extents[d];
      row.global += static_cast<std::uint64_t>(at) * map.strides[d];
    }
    each_of_row(map, start[0], row, take);
  }
}

}  // namespace

}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_tile_load(void* shared, const void* map, void* barrier, const int* start) {
  kopt_sim_cpu_body("cp.async.bulk.tensor");
  check_alignment(shared, 128, true, CALLER);
  each_of_tile(*static_cast<const TensorMap*>(map), reinterpret_cast<std::uintptr_t>(shared), start,
               [barrier, pc = CALLER](const Piece& piece) {
                 start_bulk_load({reinterpret_cast<void*>(piece.shared),
                                  reinterpret_cast<const void*>(piece.global), piece.bytes,
                                  piece.inside ? piece.bytes : 0, pc, g.stamp},
                                 reinterpret_cast<std::uintptr_t>(barrier));
               });
}

void kopt_sim_tile_store(const void* shared, const void* map, const int* start) {
  kopt_sim_cpu_body("cp.async.bulk.tensor");
  check_alignment(shared, 128, false, CALLER);
  each_of_tile(*static_cast<const TensorMap*>(map), reinterpret_cast<std::uintptr_t>(shared), start,
               [pc = CALLER](const Piece& piece) {
                 if (!piece.inside) return;
                 start_bulk_store({reinterpret_cast<void*>(piece.global),
                                   reinterpret_cast<const void*>(piece.shared), piece.bytes,
                                   piece.bytes, pc, g.stamp});
               });
}
}
