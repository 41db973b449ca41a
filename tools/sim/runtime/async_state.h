// What is under way in a block without a thread: copies, and values that other blocks sent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stamp.h"

namespace kopt_sim {

struct AsyncCopy {
  void* to;
  const void* from;
  unsigned bytes, source_bytes;  // what is beyond the source is filled with zeros
  std::uintptr_t pc;             // where the copy was started
  Stamp start;                   // of the thread that started it
};

// Copies that are waited for together; whoever lands them first leaves none.
using CopyGroup = std::shared_ptr<std::vector<AsyncCopy>>;

// An arrival at an mbarrier that comes when the copies that a thread has begun have landed.
struct LateArrival {
  std::vector<CopyGroup> copies;
  std::uintptr_t barrier, pc;
};
// What an mbarrier counts when it lands.
struct BulkLoad {
  AsyncCopy copy;
  std::uintptr_t barrier;
  bool from_other;  // block of the cluster
};
// What a bulk copy left, until something else is stored there.
struct Landed {
  unsigned bytes;
  Stamp stamp;
};
struct SentValue {
  std::uintptr_t to, barrier;  // addresses of the block that receives it
  std::uint32_t value;
  std::uintptr_t pc;
};

struct Mbarrier {
  std::uint32_t arrivals, pending;
  std::int64_t bytes;
  std::uint32_t parity;  // of the phase that is under way
  bool counts_values;    // some were sent
  bool after_producer;   // a copy to it was started behind the wait for the launch before
};

}  // namespace kopt_sim
