// Barriers among blocks: that of the grid, and that of a cluster, which has two steps: a thread
// arrives, goes on, and later waits until all have arrived.
//
// What is done before the arrival comes before what others do after their wait; what is done
// between the two steps does not. A barrier at which some thread arrives relaxed orders nothing.
#include <algorithm>
#include <cstdio>

#include "ordering.h"

namespace kopt_sim {

namespace {

bool is_everywhere(std::uint32_t Block::*count) {
  return std::all_of(g.resident.begin(), g.resident.end(),
                     [count](const Block& block) { return block.*count == block.alive; });
}

// The epoch after everything that the resident blocks did.
std::uint32_t next_epoch() {
  std::uint32_t epoch = 0;
  for (const Block& block : g.resident) epoch = std::max(epoch, block.epoch);
  return epoch + 1;
}

void release(Wait wait) {
  for (Block& block : g.resident)
    for (std::uint32_t i = 0; i < g.threads_per_block; ++i)
      if (block.fibers[i].wait == wait) block.fibers[i].wait = Wait::runnable;
}

void pass_grid_barrier() {
  const std::uint32_t epoch = next_epoch();
  g.synced[0] = g.synced[1] = {epoch, epoch};
  release(Wait::grid);
  for (Block& block : g.resident) {
    order_block(block, epoch);
    block.at_grid = 0;
    block.met_others = true;
  }
}

void pass_cluster_barrier() {
  g.synced[1] = g.synced[0];
  if (!g.phase_relaxed) g.synced[0] = {next_epoch(), g.synced[1].all};
  ++g.phase;
  release(Wait::cluster);
  for (Block& block : g.resident) {
    block.at_cluster = block.arrived = 0;
    if (g.phase_relaxed) continue;
    order_block(block, g.synced[0].all);
    for (std::uint32_t i = 0; i < g.threads_per_block; ++i)
      g.phase_after_producer |= block.fibers[i].after_producer;
  }
  g.phase_relaxed = false;
}

[[noreturn]] void stop_diverged(int line, const char* note) {
  FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
  record.line = line;
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

void arrive(bool relaxed, int line) {
  settle_pending_write();
  Fiber& self = *g.fiber;
  if (self.arrived)
    stop_diverged(line, "a thread arrives at the cluster barrier twice without waiting in between");
  self.arrived = true;
  self.arrived_relaxed = relaxed;
  self.arrival_phase = g.phase;
  g.phase_relaxed |= relaxed;
  ++g.block->arrived;
  refresh_stamp();
}

// The grid barrier counts blocks, each by its first thread: one that has ended never comes.
bool lacks_a_block() {
  const auto left = std::find_if(g.resident.begin(), g.resident.end(), [](const Block& block) {
    return block.fibers[0].wait == Wait::done;
  });
  if (left == g.resident.end()) return false;
  const auto waiting = std::find_if(g.resident.begin(), g.resident.end(),
                                    [](const Block& block) { return block.at_grid != 0; });
  Fiber* const first = std::find_if(waiting->fibers, waiting->fibers + g.threads_per_block,
                                    [](const Fiber& fiber) { return fiber.wait == Wait::grid; });
  g.block = &*waiting;
  g.fiber = first;
  FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
  record.line = first->line;
  std::snprintf(record.note, sizeof record.note,
                "block %llu, or its first thread, has ended: the grid barrier at line %d waits for "
                "it without end",
                static_cast<unsigned long long>(left->index), first->line);
  keep_fault(record);
  return true;
}

}  // namespace

// Lets go on who waits at a barrier that all resident blocks have reached; false if there is none.
bool pass_wide_barrier() {
  if (is_everywhere(&Block::at_grid)) {
    if (!lacks_a_block()) pass_grid_barrier();
  }
  else if (is_everywhere(&Block::arrived)) pass_cluster_barrier();
  else return false;
  return true;
}

// A thread that has ended is not waited for; neither does it count as arrived.
void forget_arrival(Block& block, const Fiber& fiber) {
  if (fiber.arrived && fiber.arrival_phase == g.phase) --block.arrived;
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

void kopt_sim_grid_barrier(int line) {
  settle_pending_write();
  if (!g.launch->cooperative) {
    FaultRecord record = describe_fault(Fault::crash, 0);
    record.line = line;
    std::snprintf(record.note, sizeof record.note,
                  "a grid barrier needs `cooperative: true` in the launch");
    stop_with(record);
  }
  g.fiber->wait = Wait::grid;
  g.fiber->line = line;
  ++g.block->at_grid;
  return_to_scheduler();
}

void kopt_sim_cluster_arrive(int line) { arrive(false, line); }
void kopt_sim_cluster_arrive_relaxed(int line) { arrive(true, line); }

void kopt_sim_cluster_wait(int line) {
  settle_pending_write();
  Fiber& self = *g.fiber;
  if (!self.arrived)
    stop_diverged(line, "a thread waits at the cluster barrier without having arrived");
  if (self.arrival_phase == g.phase) {
    self.wait = Wait::cluster;
    self.line = line;
    ++g.block->at_cluster;
    return_to_scheduler();
  }
  self.arrived = false;
  self.phase = g.phase;
  self.after_producer |= g.phase_after_producer;
  g.block->met_others = true;
  refresh_stamp();
}

void kopt_sim_cluster_barrier(int line) {
  kopt_sim_cluster_arrive(line);
  kopt_sim_cluster_wait(line);
}
}
