// What is counted of the accesses to one buffer; plain data.
#pragma once

#include <cstdint>

namespace kopt_sim {

struct BufferCounters {
  std::uint64_t load_bytes, store_bytes, requests, sectors, ideal_sectors;
};

}  // namespace kopt_sim
