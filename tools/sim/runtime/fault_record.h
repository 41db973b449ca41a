// One finding: what is wrong, where, and what else is known of it.
#pragma once

#include <cstdint>

#include "fiber.h"

namespace kopt_sim {

enum class Fault : std::uint32_t {
  none,
  out_of_bounds,
  misaligned,
  input_mutated,
  crash,
  timeout,
  barrier_divergence,
  data_race,
  uninitialized_read,
  unsupported,
};

struct FaultRecord {
  Fault kind;
  int launch;
  std::uint64_t block_index;
  Index3 block, thread;
  std::uint64_t pc;
  std::uint64_t last_pc;  // of the last checked access, for where pc names no line
  char variable[64];
  std::int64_t offset;
  std::uint64_t variable_bytes;
  std::uint32_t bytes;
  bool is_store;
  int line;  // of the candidate where it is known without the pc, else 0
  char note[200];
  // Of a race, the earlier access, where the run watched for it (watch.cpp); other_pc 0: unknown.
  std::uint64_t other_pc;
  Index3 other_block, other_thread;
  std::uint32_t other_bytes;
  bool other_is_store;
};

}  // namespace kopt_sim
