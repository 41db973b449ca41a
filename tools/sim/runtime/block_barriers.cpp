// The barrier of a block, and what is said when threads can never pass a barrier.
#include <cstdio>

#include "ordering.h"

namespace kopt_sim {

namespace {

const char* name_of(Wait wait) {
  switch (wait) {
    case Wait::barrier: return "a block barrier";
    case Wait::exchange: return "a warp shuffle or vote";
    case Wait::warp_sync: return "a warp sync";
    case Wait::mbarrier: return "an mbarrier";
    case Wait::matrix: return "a matrix instruction";
    case Wait::tensor_memory: return "columns of tensor memory";
    case Wait::warpgroup: return "a wgmma instruction";
    case Wait::lanes:
    case Wait::named: return "a named barrier";
    case Wait::cluster: return "a cluster barrier";
    case Wait::grid: return "a grid barrier";
    default: return "nothing";
  }
}

// Of threads that wait at mbarriers, rather one whose barrier lacks bytes alone: arrivals lack where
// those who would arrive wait themselves.
const Fiber* lacks_bytes(Block& block) {
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    const Fiber& fiber = block.fibers[i];
    if (fiber.wait == Wait::mbarrier && block.mbarriers[fiber.mbarrier].pending == 0) return &fiber;
  }
  return nullptr;
}

}  // namespace

void report_deadlock(Block& block) {
  const Fiber* first = nullptr;
  const Fiber* other = nullptr;
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    const Fiber& fiber = block.fibers[i];
    if (fiber.wait == Wait::done) continue;
    if (first == nullptr) first = &fiber;
    else if (other == nullptr && (fiber.wait != first->wait || fiber.line != first->line))
      other = &fiber;
  }
  if (other == nullptr && first->wait == Wait::mbarrier)
    if (const Fiber* found = lacks_bytes(block)) first = found;
  g.block = &block;
  g.fiber = const_cast<Fiber*>(first);
  FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
  record.line = first->line;
  if (other != nullptr)
    std::snprintf(record.note, sizeof record.note,
                  "thread %u waits at line %d for %s, thread %u at line %d for %s",
                  first->linear, first->line, name_of(first->wait), other->linear, other->line,
                  name_of(other->wait));
  else if (first->wait == Wait::mbarrier) {
    const SharedVariable* const variable = find_shared(first->mbarrier);
    const Mbarrier& barrier = block.mbarriers[first->mbarrier];
    const std::uintptr_t offset = variable == nullptr ? 0 : first->mbarrier - variable->address;
    char place[40] = "";
    if (offset != 0) std::snprintf(place, sizeof place, " at byte %zu", std::size_t{offset});
    std::snprintf(record.note, sizeof record.note,
                  "the mbarrier `%s`%s waited for at line %d lacks %d arrivals and %lld bytes",
                  variable == nullptr ? "" : variable->name, place, first->line,
                  static_cast<int>(barrier.pending), static_cast<long long>(barrier.bytes));
  } else if (first->wait == Wait::cluster || first->wait == Wait::grid)
    std::snprintf(record.note, sizeof record.note,
                  "%s at line %d is never reached by threads of other blocks",
                  name_of(first->wait), first->line);
  else if (first->wait == Wait::named) {
    const NamedBarrier& barrier = block.named_barriers[first->named.number];
    std::snprintf(record.note, sizeof record.note,
                  "barrier %u at line %d is for %u threads, of which %u have come",
                  first->named.number, first->line,
                  barrier.count == 0 ? block.alive : barrier.count, barrier.arrived);
  } else if (first->wait == Wait::warpgroup) {
    const std::uint32_t begin = first->linear / kWarpgroup * kWarpgroup;
    std::uint32_t running = 0;
    for (std::uint32_t i = begin; i < begin + kWarpgroup && i < g.threads_per_block; ++i)
      running += block.fibers[i].wait != Wait::done;
    std::snprintf(record.note, sizeof record.note,
                  "%s at line %d needs all 128 threads of its warpgroup, of which %u run",
                  name_of(first->wait), first->line, running);
  } else if (first->wait == Wait::matrix || first->wait == Wait::lanes)
    std::snprintf(record.note, sizeof record.note,
                  "%s at line %d needs all lanes of its warp, of which 0x%08x run",
                  name_of(first->wait), first->line,
                  block.warps[first->linear / 32].alive);
  else
    std::snprintf(record.note, sizeof record.note,
                  "%s at line %d names lanes (mask 0x%08x) that never come",
                  name_of(first->wait), first->line, first->mask);
  keep_fault(record);
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

unsigned kopt_sim_barrier(int predicate, int line) {
  settle_pending_write();
  acquire_at_barrier();
  if (uses_barrier_of_block(*g.block)) {
    FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
    record.line = line;
    std::snprintf(record.note, sizeof record.note,
                  "some threads use this block barrier, 0, with a count of their own at line %d",
                  g.block->named_barriers[0].line);
    stop_with(record);
  }
  Fiber& self = *g.fiber;
  self.wait = Wait::barrier;
  self.line = line;
  ++g.block->at_barrier;
  g.block->votes += predicate != 0;
  return_to_scheduler();
  return g.block->last_votes;
}
}
