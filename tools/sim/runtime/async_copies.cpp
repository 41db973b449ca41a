// Asynchronous copies, and values sent between the blocks of a cluster. What is under way takes
// effect as late as it may: when it is waited for, by a group or at an mbarrier (mbarriers.cpp).
#include <algorithm>

#include "../include/kopt_sim/runtime_interface.h"
#include "mbarriers.h"
#include "race_detector.h"

namespace kopt_sim {

namespace {

// A copy that is waited for asks for addresses that are multiples of its size, 16 at most.
const AsyncCopy& started(const AsyncCopy& copy) {
  const unsigned alignment = std::min(copy.bytes & -copy.bytes, 16u);
  check_alignment(copy.to, alignment, true, copy.pc);
  if (copy.source_bytes != 0) check_alignment(copy.from, alignment, false, copy.pc);
  check_start(copy.to, copy.bytes, true, copy.pc);
  check_start(copy.from, copy.source_bytes, false, copy.pc);
  start_overwriting(copy, *g.block);
  return copy;
}

using Groups = std::vector<CopyGroup>;

void open_group(Groups& groups) { groups.push_back(std::make_shared<std::vector<AsyncCopy>>()); }

Groups& made(Groups*& groups) {
  if (groups == nullptr) {
    groups = new Groups;
    open_group(*groups);
  }
  return *groups;
}

void wait_for(Groups& groups, unsigned groups_left) {
  while (groups.size() > groups_left + 1) {
    const CopyGroup oldest = groups.front();
    groups.erase(groups.begin());
    land_copies(oldest);
  }
}

std::uintptr_t own_address(void* shared, int line) {
  return reinterpret_cast<std::uintptr_t>(
      kopt_sim_map_shared(shared, kopt_sim_cluster_rank(), line));
}

}  // namespace

void land_copies(const CopyGroup& group) {
  std::vector<AsyncCopy> copies;
  copies.swap(*group);
  for (const AsyncCopy& copy : copies) copy_checked(copy);
}

namespace {

void start_own_load(const AsyncCopy& copy, std::uintptr_t barrier) {
  require_proxy_fence(copy.to, copy.bytes, copy.pc);
  g.block->bulk_loads.push_back({started(copy), barrier, false});
  land_if_awaited(barrier);
}

// To the same place of another block, whose mbarrier counts it. It lands there; when it was started
// is told by that block's time.
void start_load_of(Block& target, AsyncCopy copy, std::uintptr_t barrier) {
  require_reachable(target, reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes, copy.pc);
  Mbarrier& counter = find_mbarrier(target, barrier, copy.pc);
  counter.after_producer |= g.fiber->after_producer;
  check_start(copy.from, copy.source_bytes, false, copy.pc);
  start_overwriting(copy, target);
  copy.start = with_epoch(copy.start, target.epoch);
  target.bulk_loads.push_back({copy, barrier, true});
  if (Fiber* sleeper = find_sleeper(target, barrier)) sleeper->wait = Wait::runnable;
}

}  // namespace

void start_bulk_load(const AsyncCopy& copy, std::uintptr_t barrier) {
  if (g.fiber->targets == 0) return start_own_load(copy, barrier);
  Block* const first = g.block - kopt_sim_cluster_rank();
  for (std::uint32_t rest = g.fiber->targets; rest != 0; rest &= rest - 1) {
    Block* const target = first + __builtin_ctz(rest);
    if (target == g.block) start_own_load(copy, barrier);
    else start_load_of(*target, copy, barrier);
  }
}

void start_bulk_store(const AsyncCopy& copy) {
  require_proxy_fence(copy.from, copy.bytes, copy.pc);
  made(g.fiber->bulk_stores).back()->push_back(started(copy));
}

}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_multicast(unsigned targets, int line) {
  if (targets >> kopt_sim_cluster_size() != 0)
    kopt_sim_map_shared(nullptr, kopt_sim_cluster_size(), line);  // ends the run: no such rank
  g.fiber->targets = targets;
}

void kopt_sim_async_copy(void* to, const void* from, unsigned bytes, unsigned source_bytes) {
  made(g.fiber->async).back()->push_back(started({to, from, bytes, source_bytes, CALLER, g.stamp}));
}

void kopt_sim_async_commit() { open_group(made(g.fiber->async)); }

void kopt_sim_async_wait(unsigned groups_left) { wait_for(made(g.fiber->async), groups_left); }

void kopt_sim_bulk_store(void* global, const void* shared, unsigned bytes) {
  start_bulk_store({global, shared, bytes, bytes, CALLER, g.stamp});
}

void kopt_sim_bulk_commit() { open_group(made(g.fiber->bulk_stores)); }

void kopt_sim_bulk_wait(unsigned groups_left) { wait_for(made(g.fiber->bulk_stores), groups_left); }

void kopt_sim_bulk_load(void* shared, const void* global, unsigned bytes, unsigned source_bytes,
                        void* barrier) {
  start_bulk_load({shared, global, bytes, source_bytes, CALLER, g.stamp},
                  reinterpret_cast<std::uintptr_t>(barrier));
}

// Checked as a store of the sender now: nothing may still use the element, and until the receiver
// has waited for the barrier nothing may use it again.
void kopt_sim_store_async(void* shared, unsigned value, void* barrier, unsigned rank, int line) {
  settle_pending_write();
  const std::uintptr_t pc = CALLER;
  Access access{reinterpret_cast<std::uintptr_t>(shared), pc, nullptr, 0, 0, sizeof value, true};
  if (!is_shared(access.address) && access.address < kArena) stop_near_shared(access);
  access.address = reinterpret_cast<std::uintptr_t>(kopt_sim_map_shared(shared, rank, line));
  const std::uintptr_t address = own_address(barrier, line);
  if (!check_shared(access, true)) stop_near_shared(access);
  if (g.pending_write_race.kind != Fault::none) stop_with(g.pending_write_race);
  Block& target = *(g.block - kopt_sim_cluster_rank() + rank);
  find_mbarrier(target, address, pc).counts_values = true;
  target.was_reached = true;
  target.sent_values.push_back({own_address(shared, line), address, value, pc});
  if (Fiber* sleeper = find_sleeper(target, address)) sleeper->wait = Wait::runnable;
}
}
