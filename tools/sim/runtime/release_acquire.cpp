// Happens-before between blocks through atomics and volatile flags: a fence and then such an
// operation publishes what the block did so far. Who reads what it left comes after that once it has
// passed a fence itself; after a read-modify-write a barrier of the block or the warp will do, as in
// the programming guide.
#include <unordered_map>

#include "race_detector.h"

namespace kopt_sim {

namespace {

using Clock = std::unordered_map<std::uint32_t, std::uint32_t>;  // block -> epoch not yet seen
std::unordered_map<std::uintptr_t, Clock> published;
std::unordered_map<std::uint32_t, Clock> seen_by_block;
std::unordered_map<std::uint32_t, Clock> read_by_thread;  // and no fence since

void merge(Clock& into, const Clock& from) {
  for (const auto& [block, epoch] : from) {
    std::uint32_t& known = into[block];
    if (epoch > known) known = epoch;
  }
}

// Of the running thread; those of 2^20 blocks and of 1,024 threads each.
std::uint32_t thread_key() { return stamp_block(g.stamp) << 10 | stamp_thread(g.stamp); }

}  // namespace

bool ordered_by_atomics(std::uint32_t block, std::uint32_t epoch) {
  const auto clock = seen_by_block.find(stamp_block(g.stamp));
  if (clock == seen_by_block.end()) return false;
  const auto known = clock->second.find(block);
  return known != clock->second.end() && known->second > epoch;
}

void read_published(std::uintptr_t address, Acquires due) {
  const auto earlier = published.find(address);
  if (earlier == published.end()) return;
  merge(read_by_thread[thread_key()], earlier->second);
  if (due > g.fiber->acquires) g.fiber->acquires = due;
}

void acquire() {
  if (g.fiber->acquires == Acquires::nothing) return;
  const auto read = read_by_thread.find(thread_key());
  if (read != read_by_thread.end()) {
    merge(seen_by_block[stamp_block(g.stamp)], read->second);
    read_by_thread.erase(read);
  }
  g.fiber->acquires = Acquires::nothing;
}

void acquire_at_barrier() {
  if (g.fiber->acquires == Acquires::at_barrier) acquire();
}

void publish_by_atomic(std::uintptr_t address) {
  if (g.fiber->fence == 0) return;
  const std::uint32_t block = stamp_block(g.stamp);
  order_block(*g.block, g.block->epoch + 1);  // what the block does from here on is not published
  if (g.fiber->fence == 2) {
    Clock& mine = seen_by_block[block];
    mine[block] = g.block->epoch;
    merge(published[address], mine);
  }
  g.fiber->fence = 0;
  refresh_stamp();
}

}  // namespace kopt_sim
