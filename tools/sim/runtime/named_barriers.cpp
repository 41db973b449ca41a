// Named barriers: bar.sync, bar.arrive and their like, by number and with a count of threads. They
// order memory for those that wait there, after what any of those did that came to it.
#include <algorithm>
#include <cstdio>

#include "ordering.h"

namespace kopt_sim {

namespace {

constexpr unsigned kBarriers = 16;

// Nobody goes on.
void stop_at_barrier(int line, const char* note) {
  FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
  record.line = line;
  std::snprintf(record.note, sizeof record.note, "%s", note);
  keep_fault(record);
}

std::uint32_t warp_count() { return static_cast<std::uint32_t>(g.block->warps.size()); }

// Lanes of its warp that are not together with `one` at its barrier, and that could still come.
std::uint32_t lanes_apart(const Fiber& one) {
  const Fiber* lanes = &g.block->fibers[one.linear & ~31u];
  std::uint32_t apart = 0;
  for (std::uint32_t rest = warp_of(one).alive; rest != 0; rest &= rest - 1) {
    const Fiber& other = lanes[__builtin_ctz(rest)];
    if (&other != &one && (other.wait != Wait::lanes || other.line != one.line ||
                           !(other.named == one.named)))
      apart |= rest & -rest;
  }
  return apart;
}

// The threads that one arrival counts for: all of a warp at an aligned instruction; where a thread
// comes alone, those that the last warp lacks come with the last thread.
std::uint32_t weight(const Fiber& one) {
  if (one.named.aligned) return 32;
  return one.linear + 1 == g.threads_per_block ? 32 - one.linear % 32 : 1;
}

bool is_complete(const NamedBarrier& barrier) {
  if (barrier.count != 0) return barrier.arrived >= barrier.count;
  return barrier.threads != 0 && barrier.threads == g.block->alive;
}

void complete(NamedBarrier& barrier, unsigned number) {
  Block& block = *g.block;
  const std::uint32_t warps = warp_count();
  for (const Arrival& waiting : barrier.arrivals) {
    if (!waiting.waits) continue;
    std::uint32_t* const met = &block.met[waiting.warp * warps];
    for (const Arrival& other : barrier.arrivals) {
      for (std::uint32_t i = 0; i < warps; ++i) met[i] = std::max(met[i], other.met[i]);
      met[other.warp] = std::max(met[other.warp], other.epoch);
    }
  }
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = block.fibers[i];
    if (fiber.wait != Wait::named || fiber.named.number != number) continue;
    fiber.wait = Wait::runnable;
    fiber.vote = barrier.votes;
    fiber.phase = std::max(fiber.phase, barrier.phase);
    fiber.after_producer |= barrier.after_producer;
  }
  ++g.report->barriers;
  barrier = {};
}

std::uint32_t threads_of(std::uint32_t count) { return count != 0 ? count : g.block->alive; }

bool is_alike(const NamedBarrier& barrier, const Fiber& one, std::uint32_t lanes) {
  char note[160] = "";
  if (!barrier.arrivals.empty() && barrier.count != one.named.count)
    std::snprintf(note, sizeof note,
                  "barrier %u is for %u threads at line %d, for %u at line %d", one.named.number,
                  threads_of(barrier.count), barrier.line, threads_of(one.named.count), one.line);
  else if (!barrier.arrivals.empty() && barrier.takes_votes != one.named.votes)
    std::snprintf(note, sizeof note,
                  "some threads vote at barrier %u (bar.red), others come to it without: lines %d "
                  "and %d", one.named.number, barrier.line, one.line);
  for (const Arrival& before : barrier.arrivals)
    if (before.warp == one.linear / 32 && (before.lanes & lanes) != 0)
      std::snprintf(note, sizeof note,
                    "thread %u comes to barrier %u twice before %u threads have come to it",
                    one.linear, one.named.number, threads_of(one.named.count));
  if (note[0] == 0) return true;
  stop_at_barrier(one.line, note);
  return false;
}

// `one`, or the lanes of its warp that are together with it, come to their barrier.
void arrive(Fiber& one) {
  Block& block = *g.block;
  const NamedArrival at = one.named;
  NamedBarrier& barrier = block.named_barriers[at.number];
  const std::uint32_t warp = one.linear / 32, warps = warp_count();
  const std::uint32_t lanes = at.aligned ? warp_of(one).alive : 1u << one.linear % 32;
  if (!is_alike(barrier, one, lanes)) return;
  ++block.epoch;  // what its threads do from here on is not ordered by it
  ++block.unordered_epochs;
  const auto met = block.met.begin() + warp * warps;
  barrier.arrivals.push_back({warp, lanes, block.epoch, at.waits, {met, met + warps}});
  barrier.count = at.count;
  barrier.line = one.line;
  barrier.takes_votes = at.votes;
  barrier.arrived += weight(one);
  barrier.threads += static_cast<std::uint32_t>(__builtin_popcount(lanes));
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Fiber& fiber = block.fibers[warp * 32 + static_cast<unsigned>(__builtin_ctz(rest))];
    fiber.wait = at.waits ? Wait::named : Wait::runnable;
    if (at.votes) barrier.votes += fiber.vote;
    barrier.phase = std::max(barrier.phase, fiber.phase);
    barrier.after_producer |= fiber.after_producer;
  }
  if (is_complete(barrier)) complete(barrier, at.number);
  refresh_stamp();
}

bool is_sound(const NamedArrival& at, int line) {
  char note[160] = "";
  if (at.number >= kBarriers)
    std::snprintf(note, sizeof note, "a block has the barriers 0 to 15, but no %u", at.number);
  else if (at.count % 32 != 0)
    std::snprintf(note, sizeof note, "barrier %u is for %u threads: no multiple of 32", at.number,
                  at.count);
  else if (at.count > 32 * warp_count())
    std::snprintf(note, sizeof note, "barrier %u is for %u threads, of which the block has %u",
                  at.number, at.count, static_cast<unsigned>(g.threads_per_block));
  else if (at.number == 0 && g.block->at_barrier != 0)
    std::snprintf(note, sizeof note, "barrier 0 is that of __syncthreads(), where others wait");
  if (note[0] == 0) return true;
  stop_at_barrier(line, note);
  return false;
}

void come(const NamedArrival& at, int line) {
  settle_pending_write();
  Block& block = *g.block;
  Fiber& self = *g.fiber;
  acquire_at_barrier();
  if (block.named_barriers.empty()) {
    block.named_barriers.resize(kBarriers);
    block.met.assign(warp_count() * warp_count(), 0);
  }
  self.named = at;
  self.line = line;
  self.wait = Wait::lanes;
  if (is_sound(self.named, line) && (!at.aligned || lanes_apart(self) == 0)) arrive(self);
  if (self.wait != Wait::runnable) return_to_scheduler();
}

bool is_barrier_of_all(unsigned number, unsigned count) {
  return number == 0 && (count == 0 || count == 32 * warp_count());
}

}  // namespace

// Where a thread that ends was waited for, by its warp or by a barrier of the whole block.
void leave_named_barriers(const Fiber& ended) {
  Block& block = *g.block;
  if (block.named_barriers.empty()) return;
  for (std::uint32_t rest = warp_of(ended).alive; rest != 0; rest &= rest - 1) {
    Fiber& one = block.fibers[(ended.linear & ~31u) + static_cast<unsigned>(__builtin_ctz(rest))];
    if (one.wait == Wait::lanes && lanes_apart(one) == 0) arrive(one);
  }
  for (unsigned number = 0; number < kBarriers; ++number)
    if (is_complete(block.named_barriers[number])) complete(block.named_barriers[number], number);
}

bool uses_barrier_of_block(const Block& block) {
  return !block.named_barriers.empty() && !block.named_barriers[0].arrivals.empty();
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

void kopt_sim_named_barrier(unsigned number, unsigned count, bool waits, bool aligned, int line) {
  if (waits && is_barrier_of_all(number, count)) kopt_sim_barrier(0, line);
  else come({number, count, waits, aligned, false}, line);
}

unsigned kopt_sim_named_vote(unsigned number, unsigned count, int predicate, bool aligned,
                             int line) {
  if (is_barrier_of_all(number, count)) return kopt_sim_barrier(predicate, line);
  g.fiber->vote = predicate != 0;
  come({number, count, true, aligned, true}, line);
  return g.fiber->vote;
}
}
