// Warp exchanges, warp syncs and fences.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "race_detector.h"

namespace kopt_sim {

namespace {

// True when every lane of `mask` that still runs waits for the same operation.
bool all_arrived(const Warp& warp, const Fiber& self, std::uint32_t mask, Wait wait) {
  Fiber* lanes = &g.block->fibers[self.linear & ~31u];
  for (std::uint32_t rest = mask & warp.alive; rest != 0; rest &= rest - 1) {
    const Fiber& other = lanes[__builtin_ctz(rest)];
    if (&other == &self) continue;
    if (other.wait != wait || other.mask != mask || other.exchange_kind != self.exchange_kind)
      return false;
  }
  return true;
}

// A stamp has 11 bits for the lane epoch. Before they run out the block's epoch moves on: what the
// block did so far counts as ordered, so a race across this point is missed, none is invented.
void restart_lane_epochs(Warp& warp, Fiber* lanes) {
  order_block(*g.block, g.block->epoch + 1);
  for (unsigned lane = 0; lane < 32; ++lane) {
    std::memset(warp.seen[lane], 0, sizeof warp.seen[lane]);
    if (warp.alive >> lane & 1u) lanes[lane].lane_epoch = 0;
  }
}

// Lanes that synced are ordered after everything that any of them did or knew.
void join_lanes(Warp& warp, Fiber* lanes, std::uint32_t lanes_mask) {
  std::uint16_t joined[32] = {};
  std::uint32_t phase = 0;
  bool after_producer = false;
  for (std::uint32_t rest = lanes_mask; rest != 0; rest &= rest - 1)
    if (lanes[__builtin_ctz(rest)].lane_epoch == kMaxLaneEpoch) restart_lane_epochs(warp, lanes);
  for (std::uint32_t rest = lanes_mask; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    ++lanes[lane].lane_epoch;
    phase = std::max(phase, lanes[lane].phase);
    after_producer |= lanes[lane].after_producer;
    warp.seen[lane][lane] = static_cast<std::uint16_t>(lanes[lane].lane_epoch);
    for (unsigned other = 0; other < 32; ++other)
      if (warp.seen[lane][other] > joined[other]) joined[other] = warp.seen[lane][other];
  }
  for (std::uint32_t rest = lanes_mask; rest != 0; rest &= rest - 1) {
    std::memcpy(warp.seen[__builtin_ctz(rest)], joined, sizeof joined);
    lanes[__builtin_ctz(rest)].phase = phase;
    lanes[__builtin_ctz(rest)].after_producer = after_producer;
  }
  warp.synced = true;
}

// Lanes read at different times, and a quick lane may be in its next exchange by then: each
// completed exchange has a result of its own.
std::uint8_t keep_result(Warp& warp, std::uint32_t lanes_mask) {
  std::size_t free = 0;
  while (free < warp.results.size() && warp.results[free].unread != 0) ++free;
  if (free == warp.results.size()) warp.results.emplace_back();
  std::memcpy(warp.results[free].values, warp.offered, sizeof warp.offered);
  warp.results[free].unread = lanes_mask;
  return static_cast<std::uint8_t>(free);
}

// Lets the lanes go on that have all arrived at the operation that `one` of them waits for.
void release_lanes(const Fiber& one, Wait wait, std::uint32_t lanes_mask) {
  Fiber* lanes = &g.block->fibers[one.linear & ~31u];
  Warp& warp = warp_of(one);
  std::uint8_t result = 0;
  if (wait == Wait::warp_sync) join_lanes(warp, lanes, lanes_mask);
  else result = keep_result(warp, lanes_mask);
  for (std::uint32_t rest = lanes_mask; rest != 0; rest &= rest - 1) {
    Fiber& other = lanes[__builtin_ctz(rest)];
    other.wait = Wait::runnable;
    other.exchange_lanes = lanes_mask;
    other.exchange_result = result;
  }
}

void wait_as(Wait wait, std::uint32_t mask, int kind, int line) {
  settle_pending_write();
  Fiber& self = *g.fiber;
  if ((mask >> (self.linear % 32) & 1u) == 0) {
    FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
    record.line = line;
    std::snprintf(record.note, sizeof record.note, "the calling lane %u is not in the mask 0x%08x",
                  self.linear % 32, mask);
    stop_with(record);
  }
  self.mask = mask;
  self.exchange_kind = static_cast<std::uint8_t>(kind);
  self.line = line;
  Warp& warp = warp_of(self);
  if (!all_arrived(warp, self, mask, wait)) {
    self.wait = wait;
    return_to_scheduler();
    return;
  }
  release_lanes(self, wait, mask & warp.alive);
  refresh_stamp();
}

// The values by lane, to be read before another thread runs.
const std::uint64_t* exchange(int kind, std::uint32_t mask, std::uint64_t value, int line) {
  Fiber& self = *g.fiber;
  Warp& warp = warp_of(self);
  warp.offered[self.linear % 32] = value;
  wait_as(Wait::exchange, mask, kind, line);
  ExchangeResult& result = warp.results[self.exchange_result];
  result.unread &= ~(1u << self.linear % 32);
  return result.values;
}

constexpr int kShuffle = 1;
constexpr std::uint64_t kUndefined = 0x7fbadbad7fbadbad;  // NaN in fp32, fp64 and, halved, bf16

}  // namespace

void release_if_complete(const Fiber& waiting) {
  if (waiting.wait != Wait::exchange && waiting.wait != Wait::warp_sync) return;
  const Warp& warp = warp_of(waiting);
  if (all_arrived(warp, waiting, waiting.mask, waiting.wait))
    release_lanes(waiting, waiting.wait, waiting.mask & warp.alive);
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

unsigned kopt_sim_exchange(int kind, unsigned mask, std::uint64_t value, int line,
                           std::uint64_t* values) {
  std::memcpy(values, exchange(kind, mask, value, line), 32 * sizeof *values);
  return g.fiber->exchange_lanes;
}

std::uint64_t kopt_sim_shuffle(unsigned mask, std::uint64_t value, unsigned source, int line) {
  const std::uint64_t* values = exchange(kShuffle, mask, value, line);
  return g.fiber->exchange_lanes >> source & 1u ? values[source] : kUndefined;
}

void kopt_sim_sync_warp(unsigned mask, int line) {
  acquire_at_barrier();
  wait_as(Wait::warp_sync, mask, 0, line);
}

unsigned kopt_sim_active_mask(int line) {
  g.fiber->wait = Wait::converge;
  g.fiber->line = line;
  return_to_scheduler();
  return g.fiber->exchange_lanes;
}

unsigned kopt_sim_lane() { return g.fiber->linear % 32; }

void kopt_sim_fence(int scope) {
  const std::uint8_t fence = scope == 0 ? 1 : 2;
  if (fence > g.fiber->fence) g.fiber->fence = fence;
  if (fence == 2) acquire();
}

void kopt_sim_wait_for_producer() { g.fiber->after_producer = true; }

void kopt_sim_yield() {
  settle_pending_write();
  return_to_scheduler();
}

// glibc's name for a failed assert(); the C library's own would write and abort.
[[noreturn]] void __assert_fail(const char* condition, const char*, unsigned line,
                                const char*) noexcept {
  FaultRecord record = describe_fault(Fault::crash, 0);
  record.line = static_cast<int>(line);
  std::snprintf(record.note, sizeof record.note, "assertion failed: %.150s", condition);
  stop_with(record);
}

void kopt_sim_trap(int line) {
  FaultRecord record = describe_fault(Fault::crash, 0);
  record.line = line;
  std::snprintf(record.note, sizeof record.note, "the kernel called __trap()");
  stop_with(record);
}

void kopt_sim_cpu_body(const char* name) {
  for (auto& known : g.report->cpu_bodies) {
    if (std::strcmp(known, name) == 0) return;
    if (known[0] == 0) {
      std::snprintf(known, sizeof known, "%s", name);
      return;
    }
  }
}

// Goes forward by steps that follow from the schedule's seed: no value may depend on it.
long long kopt_sim_clock() {
  static long long cycles = 0;
  return cycles += 1 + g.random() % 256;
}
}
