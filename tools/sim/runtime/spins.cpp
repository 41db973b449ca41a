// Blocks that wait for others by flags in global memory. A thread that reads one address over and over
// gives way early; if that does not help a block that runs alone, it waits for one that has not started,
// and the launch is run again with its blocks resident together.
#include <cstdio>

#include "state.h"

namespace kopt_sim {

namespace {

constexpr unsigned kPatience = 128;    // reads before others get their turn
constexpr unsigned kDespair = 1 << 15;  // reads that no thread of the block has ended

}  // namespace

void count_spin(std::uintptr_t address, std::uintptr_t pc) {
  Spin& spin = g.fiber->spin;
  if (spin.address != address || spin.pc != pc) {
    spin = {address, pc, 0};
    return;
  }
  if (++spin.count % kPatience != 0 || address < kArena) return;
  g.accesses_until_switch = 2;
  const bool alone = g.resident.size() == 1 && volume(g.launch->grid) > 1;
  if (spin.count < kDespair || !alone) return;
  g.report->spins = true;
  FaultRecord record = describe_fault(Fault::timeout, pc);
  std::snprintf(record.note, sizeof record.note, "it waits for a block that has not started");
  stop_with(record);
}

}  // namespace kopt_sim
