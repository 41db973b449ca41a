// What threads do with mbarriers: they make them, arrive, wait, and try. A try that need not succeed
// yet fails.
#include <cstdio>
#include <cstring>

#include "../include/kopt_sim/runtime_interface.h"
#include "mbarriers.h"
#include "race_detector.h"

namespace kopt_sim {

namespace {

constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // that a phase counts (PTX ISA, tx-count)
constexpr unsigned kMostStalls = 64;  // tries in a row that fail where nothing else can go on

// Who meets others at an mbarrier comes after the producer if any of the block does: which of them
// arrived there is not followed.
void meet_block() {
  for (std::uint32_t i = 0; i < g.threads_per_block && !g.fiber->after_producer; ++i)
    g.fiber->after_producer = g.block->fibers[i].after_producer;
}

void expect_bytes(Mbarrier& barrier, std::int64_t bytes, std::uintptr_t pc) {
  barrier.bytes += bytes;
  if (barrier.bytes > kMostBytes)
    stop_at_mbarrier("more bytes are expected than a phase can count: 1,048,575", pc);
}

// At another block's barrier: who waits there comes after all that this block did so far.
void arrive_elsewhere(Block& target, std::uintptr_t address, std::uint32_t count,
                      unsigned expected_bytes, std::uintptr_t pc) {
  settle_pending_write();
  Access access{address, pc, nullptr, 0, 0, 8, true};
  access.is_atomic = true;
  if (!check_shared(access, true)) stop_near_shared(access);
  const std::uintptr_t own = own_address_of(address);
  Mbarrier& barrier = find_mbarrier(target, own, pc);
  g.fiber->fence = 2;
  publish_by_atomic(address);
  expect_bytes(barrier, expected_bytes, pc);
  barrier.pending -= count;
  complete_if_due(own, barrier, target);
}

// Whoever has waited comes after what other blocks did before they arrived.
void acquire_from_others(std::uintptr_t address) {
  if (g.resident.size() == 1) return;
  g.fiber->after_producer |= find_mbarrier(*g.block, address, 0).after_producer;
  read_published(address_among_blocks(address), Acquires::at_fence);
  acquire();
  refresh_stamp();
}

// Returns the parity of the phase that the thread came to.
std::uint32_t arrive(std::uintptr_t address, std::uint32_t count, unsigned expected_bytes,
                     std::uintptr_t pc) {
  settle_pending_write();
  Mbarrier& barrier = find_mbarrier(*g.block, address, pc);
  const std::uint32_t parity = barrier.parity;
  expect_bytes(barrier, expected_bytes, pc);
  barrier.pending -= count;
  complete_if_due(address, barrier, *g.block);
  land_if_awaited(address);
  return parity;
}

void sleep_at(std::uintptr_t address, int line) {
  g.fiber->wait = Wait::mbarrier;
  g.fiber->mbarrier = address;
  g.fiber->line = line;
  return_to_scheduler();
  meet_block();
}

bool has_passed(std::uintptr_t address, unsigned parity, std::uintptr_t pc) {
  return find_mbarrier(*g.block, address, pc).parity != (parity & 1u);
}

}  // namespace

bool fail_tries(Block& block) {
  bool any = false;
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = block.fibers[i];
    if (fiber.wait != Wait::mbarrier || !fiber.tries || ++fiber.stalls > kMostStalls) continue;
    fiber.wait = Wait::runnable;
    any = true;
  }
  return any;
}

}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_mbarrier_init(void* barrier, unsigned arrivals) {
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  check_atomic(address, 8, false, CALLER);  // bounds and alignment
  if (!is_shared(address)) stop_at_mbarrier("an mbarrier must lie in shared memory", CALLER);
  make_mbarrier(address, arrivals);
}

void kopt_sim_mbarrier_arrive(void* barrier, unsigned expected_bytes) {
  arrive(reinterpret_cast<std::uintptr_t>(barrier), 1, expected_bytes, CALLER);
}

unsigned long long kopt_sim_mbarrier_arrive_many(void* barrier, unsigned count,
                                                 unsigned expected_bytes, bool drops) {
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  if (Block* const other = other_block_at(address)) {
    arrive_elsewhere(*other, address, count, expected_bytes, CALLER);
    return 0;
  }
  Mbarrier& state = find_mbarrier(*g.block, address, CALLER);
  if (drops) state.arrivals -= count;
  return arrive(address, count, expected_bytes, CALLER);
}

// `counted`: one more arrival than the barrier was made for.
void kopt_sim_async_arrive(void* barrier, bool counted) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  Mbarrier& state = find_mbarrier(*g.block, address, CALLER);
  if (counted) ++state.pending;
  const auto* groups = g.fiber->async;
  g.block->late_arrivals.push_back(
      {groups == nullptr ? std::vector<CopyGroup>{} : *groups, address, CALLER});
  land_if_awaited(address);
}

void kopt_sim_mbarrier_expect(void* barrier, unsigned bytes) {
  settle_pending_write();
  expect_bytes(find_mbarrier(*g.block, reinterpret_cast<std::uintptr_t>(barrier), CALLER), bytes,
               CALLER);
}

void kopt_sim_mbarrier_complete(void* barrier, unsigned bytes) {
  settle_pending_write();
  count_bytes(reinterpret_cast<std::uintptr_t>(barrier), bytes, CALLER);
}

void kopt_sim_mbarrier_invalidate(void* barrier) {
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  find_mbarrier(*g.block, address, CALLER);
  check_atomic(address, 8, false, CALLER);
  std::memset(barrier, g.poison, 8);
  g.block->mbarriers.erase(address);
}

// The first try for a phase that is not complete fails, after others have had their turn; the next
// one waits, and fails only where nothing else can go on.
bool kopt_sim_mbarrier_try(void* barrier, unsigned parity, int line) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  Fiber& self = *g.fiber;
  meet_block();
  if (!has_passed(address, parity, CALLER) && !self.has_failed) {
    self.has_failed = true;
    return_to_scheduler();
    return false;
  }
  if (!has_passed(address, parity, CALLER)) land(address);
  if (!has_passed(address, parity, CALLER)) {
    self.tries = true;
    sleep_at(address, line);
    self.tries = false;
    if (!has_passed(address, parity, CALLER)) return false;
  }
  self.has_failed = false;
  self.stalls = 0;
  acquire_from_others(address);
  return true;
}

void kopt_sim_mbarrier_wait(void* barrier, unsigned parity, int line) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  const Mbarrier& state = find_mbarrier(*g.block, address, CALLER);
  const auto must_wait = [&state, parity] { return state.parity == (parity & 1u); };
  meet_block();
  while (must_wait()) {
    land(address);
    if (must_wait()) sleep_at(address, line);
  }
  acquire_from_others(address);
}
}
