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
    case Wait::cluster: return "a cluster barrier";
    case Wait::grid: return "a grid barrier";
    default: return "nothing";
  }
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
    std::snprintf(record.note, sizeof record.note,
                  "the mbarrier `%s` waited for at line %d lacks %d arrivals and %lld bytes",
                  variable == nullptr ? "" : variable->name, first->line,
                  static_cast<int>(barrier.pending), static_cast<long long>(barrier.bytes));
  } else if (first->wait == Wait::cluster || first->wait == Wait::grid)
    std::snprintf(record.note, sizeof record.note,
                  "%s at line %d is never reached by threads of other blocks",
                  name_of(first->wait), first->line);
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
  Fiber& self = *g.fiber;
  self.wait = Wait::barrier;
  self.line = line;
  ++g.block->at_barrier;
  g.block->votes += predicate != 0;
  return_to_scheduler();
  return g.block->last_votes;
}
}
