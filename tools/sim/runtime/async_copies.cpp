// Asynchronous copies and mbarriers. A copy takes effect as late as it may: when it is waited for.
#include <algorithm>
#include <cstdio>

#include "shadow.h"

namespace kopt_sim {

namespace {

// A copy that is waited for asks for addresses that are multiples of its size, 16 at most.
AsyncCopy make_copy(void* to, const void* from, unsigned bytes, unsigned source_bytes,
                    std::uintptr_t pc) {
  const unsigned alignment = std::min(bytes & -bytes, 16u);
  check_alignment(to, alignment, true, pc);
  if (source_bytes != 0) check_alignment(from, alignment, false, pc);
  check_start(to, bytes, true, pc);
  check_start(from, source_bytes, false, pc);
  return {to, from, bytes, source_bytes, pc};
}

std::vector<std::vector<AsyncCopy>>& groups_of(Fiber& fiber) {
  if (fiber.async == nullptr) fiber.async = new std::vector<std::vector<AsyncCopy>>(1);
  return *fiber.async;
}

Mbarrier& find_mbarrier(std::uintptr_t address, std::uintptr_t pc) {
  const auto found = g.block->mbarriers.find(address);
  if (found == g.block->mbarriers.end()) {
    FaultRecord record = describe_fault(Fault::uninitialized_read, pc);
    std::snprintf(record.variable, sizeof record.variable, "mbarrier");
    std::snprintf(record.note, sizeof record.note, "the mbarrier was not initialised");
    stop_with(record);
  }
  return found->second;
}

void complete_if_due(std::uintptr_t address, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  barrier.parity ^= 1;
  ++g.block->epoch;  // whoever waited is ordered after whoever arrived
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = g.block->fibers[i];
    if (fiber.wait == Wait::mbarrier && fiber.mbarrier == address) fiber.wait = Wait::runnable;
  }
  refresh_stamp();
}

// Lands the loads that count on this barrier.
void land_loads(std::uintptr_t address) {
  std::vector<BulkLoad> due, rest;
  for (const BulkLoad& load : g.block->bulk_loads)
    (load.barrier == address ? due : rest).push_back(load);
  g.block->bulk_loads.swap(rest);
  for (const BulkLoad& load : due) {
    copy_checked(load.copy);
    Mbarrier& barrier = find_mbarrier(address, load.copy.pc);
    barrier.bytes -= load.copy.bytes;
    complete_if_due(address, barrier);
  }
}

// Who meets others at an mbarrier comes after the producer if any of the block does: which of them
// arrived there is not followed.
void meet_block() {
  for (std::uint32_t i = 0; i < g.threads_per_block && !g.fiber->after_producer; ++i)
    g.fiber->after_producer = g.block->fibers[i].after_producer;
}

// Threads that already sleep at the barrier cannot land its loads themselves.
void land_if_awaited(std::uintptr_t address) {
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    const Fiber& fiber = g.block->fibers[i];
    if (fiber.wait == Wait::mbarrier && fiber.mbarrier == address) return land_loads(address);
  }
}

}  // namespace
}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_async_copy(void* to, const void* from, unsigned bytes, unsigned source_bytes) {
  groups_of(*g.fiber).back().push_back(make_copy(to, from, bytes, source_bytes, CALLER));
}

void kopt_sim_async_commit() { groups_of(*g.fiber).emplace_back(); }

void kopt_sim_async_wait(unsigned groups_left) {
  auto& groups = groups_of(*g.fiber);
  while (groups.size() > groups_left + 1) {
    const std::vector<AsyncCopy> oldest = groups.front();
    groups.erase(groups.begin());
    for (const AsyncCopy& copy : oldest) copy_checked(copy);
  }
}

void kopt_sim_mbarrier_init(void* barrier, unsigned arrivals) {
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  check_atomic(address, 8, false, CALLER);  // bounds and alignment
  g.block->mbarriers[address] = {arrivals, arrivals, 0, 0};
}

void kopt_sim_mbarrier_arrive(void* barrier, unsigned expected_bytes) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  Mbarrier& state = find_mbarrier(address, CALLER);
  state.bytes += expected_bytes;
  --state.pending;
  complete_if_due(address, state);
  land_if_awaited(address);
}

void kopt_sim_mbarrier_wait(void* barrier, unsigned parity, int line) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  meet_block();
  land_loads(address);
  while (find_mbarrier(address, CALLER).parity == (parity & 1u)) {
    g.fiber->wait = Wait::mbarrier;
    g.fiber->mbarrier = address;
    g.fiber->line = line;
    return_to_scheduler();
    meet_block();
    land_loads(address);
  }
}

void kopt_sim_bulk_load(void* shared, const void* global, unsigned bytes, unsigned source_bytes,
                        void* barrier) {
  g.block->bulk_loads.push_back(
      {make_copy(shared, global, bytes, source_bytes, CALLER),
       reinterpret_cast<std::uintptr_t>(barrier)});
  land_if_awaited(reinterpret_cast<std::uintptr_t>(barrier));
}
}
