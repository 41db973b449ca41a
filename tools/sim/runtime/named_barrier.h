// A named barrier of a block, and who has come to it.
#pragma once

#include <cstdint>
#include <vector>

namespace kopt_sim {

struct Block;
struct Fiber;

// A use of a named barrier; count 0: for all threads of the block.
struct NamedArrival {
  std::uint32_t number, count;
  bool waits, aligned;
  bool votes;  // bar.red

  bool operator==(const NamedArrival& other) const {
    return number == other.number && count == other.count && waits == other.waits &&
           votes == other.votes;
  }
};

// Threads of a warp that have come to a named barrier.
struct Arrival {
  std::uint32_t warp, lanes;
  std::uint32_t epoch;             // what they did in earlier ones comes before
  bool waits;
  std::vector<std::uint32_t> met;  // what they came after themselves (Block::met)
};

struct NamedBarrier {
  std::vector<Arrival> arrivals;  // since it was complete
  std::uint32_t count = 0;        // that it waits for; 0: all threads of the block
  std::uint32_t arrived = 0, threads = 0;  // whole warps count 32 `arrived`, whatever they lack
  std::uint32_t votes = 0;  // of those that have come
  bool takes_votes = false;
  std::uint32_t phase = 0;
  bool after_producer = false;
  int line = 0;
};

// named_barriers.cpp
void leave_named_barriers(const Fiber& ended);
bool uses_barrier_of_block(const Block& block);

}  // namespace kopt_sim
