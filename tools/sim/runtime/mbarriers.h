// mbarriers of a block: their state by address, and what lands when one is waited for.
#pragma once

#include "state.h"

namespace kopt_sim {

// Ends the run where the barrier was not made, or is something else by now.
Mbarrier& find_mbarrier(Block& block, std::uintptr_t address, std::uintptr_t pc);
void make_mbarrier(std::uintptr_t address, std::uint32_t arrivals);
[[noreturn]] void stop_at_mbarrier(const char* note, std::uintptr_t pc);
void complete_if_due(std::uintptr_t address, Mbarrier& barrier, Block& block);
void count_bytes(std::uintptr_t address, unsigned bytes, std::uintptr_t pc);
// Lands what counts on this barrier.
void land(std::uintptr_t address);
// A thread of `block` that sleeps at the barrier, null if there is none.
Fiber* find_sleeper(Block& block, std::uintptr_t address);
// Threads that already sleep at the barrier cannot land its loads themselves.
void land_if_awaited(std::uintptr_t address);
// mbarrier_steps.cpp. Wakes threads whose tries may fail, where nothing else can go on. False: there is none.
bool fail_tries(Block& block);

}  // namespace kopt_sim
