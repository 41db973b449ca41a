// What is counted of the accesses to one buffer; plain data.
#pragma once

#include <cstdint>

namespace kopt_sim {

constexpr unsigned kTouchClasses = 18;  // the last one: 2^16 others or more

struct BufferCounters {
  std::uint64_t load_bytes, store_bytes, requests, sectors, ideal_sectors;
  // Sectors by the others that the warp loaded, or stored to, since it last did so with this one:
  // entry k + 1 those with k bits in the number of others, entry 0 those that it never had.
  std::uint64_t touches[kTouchClasses];
};

}  // namespace kopt_sim
