// Who accessed an element last, and when, in one word.
#pragma once

#include <cstdint>

namespace kopt_sim {

// Bits: 63 valid, 62 of blocks that are not all resident together, 42-61 block, 24-41 block epoch
// (barriers passed), 23 made between arriving at a cluster barrier and its completion, 12-22 lane
// epoch (warp syncs since), 10-11 whose (0 one thread's, else several ones' of 1 a warp, 2 a block,
// 3 several blocks; the other bits are those of the last), 0-9 thread of the block.
using Stamp = std::uint64_t;

struct Cell {
  Stamp write;
  Stamp read;
  Stamp met;  // by atomics or volatile stores, which may meet others of their kind
};

constexpr Stamp kValid = Stamp{1} << 63;
constexpr Stamp kStrangers = Stamp{1} << 62;
constexpr Stamp kManyShift = 10;
constexpr Stamp kEpochBits = Stamp{0x3ffff} << 24;
inline std::uint32_t stamp_block(Stamp s) { return static_cast<std::uint32_t>(s >> 42) & 0xfffffu; }
inline std::uint32_t stamp_epoch(Stamp s) { return static_cast<std::uint32_t>(s >> 24) & 0x3ffffu; }
constexpr Stamp kArrived = Stamp{1} << 23;
constexpr std::uint32_t kMaxLaneEpoch = 0x7ff;
inline std::uint32_t stamp_lane_epoch(Stamp s) {
  return static_cast<std::uint32_t>(s >> 12) & kMaxLaneEpoch;
}
inline std::uint32_t stamp_many(Stamp s) { return static_cast<std::uint32_t>(s >> 10) & 3u; }
inline Stamp with_epoch(Stamp s, std::uint32_t epoch) {
  return (s & ~kEpochBits) | (Stamp{epoch} << 24 & kEpochBits);
}
inline std::uint32_t stamp_thread(Stamp s) { return static_cast<std::uint32_t>(s) & 0x3ffu; }

}  // namespace kopt_sim
