// What orders accesses beside barriers: flags and fences, and what comes of it where nothing does.
#pragma once

#include "state.h"

namespace kopt_sim {

struct Access;  // race_detector.h

// All that a block did comes before what any of its threads does from here on.
inline void order_block(Block& block, std::uint32_t next_epoch) {
  block.epoch = next_epoch;
  block.unordered_epochs = 0;
}

// How many epochs ago one was, by its bits in a stamp.
inline std::uint32_t epoch_age(std::uint32_t epoch) { return (g.block->epoch - epoch) & 0x3ffffu; }

// release_acquire.cpp
bool ordered_by_atomics(std::uint32_t block, std::uint32_t epoch);
void read_published(std::uintptr_t address, Acquires due);
void publish_by_atomic(std::uintptr_t address);
void acquire();
void acquire_at_barrier();

// volatile_values.cpp
void keep_overwritten(std::uintptr_t place, const Access& access);
bool serve_overwritten(std::uintptr_t place, const Access& access);
bool take_back_served();

// async_proxy.cpp
void require_proxy_fence(const volatile void* shared, unsigned bytes, std::uintptr_t pc);
void note_landed(const AsyncCopy& copy);

// async_hazards.cpp
void start_overwriting(const AsyncCopy& copy, Block& owner);
void end_overwriting(const AsyncCopy& copy);

}  // namespace kopt_sim
