// Loads that an atomic operation on the same address checks again: what `old = *p` finds goes into
// atomicCAS(p, old, ...), or decides whether atomicMax(p, x) is worth while. Such a load may meet
// atomic operations as if it were one. Which lines have them is learned in a run of its own.
#include <algorithm>
#include <cstring>

#include "../include/kopt_sim/runtime_interface.h"
#include "race_detector.h"

namespace kopt_sim {

void note_load(std::uintptr_t address, unsigned bytes, std::uintptr_t pc) {
  if (bytes > 8) return;
  Fiber& self = *g.fiber;
  RecentLoad& load = self.recent[self.recent_count++ % 4];
  load = {address, pc, bytes, 0, g.stamp};
  std::memcpy(&load.value, reinterpret_cast<const void*>(address), bytes);
}

void forget_loads() {
  if (!g.learns) return;
  for (RecentLoad& load : g.fiber->recent) load.bytes = 0;
}

bool is_rechecked(std::uintptr_t pc) {
  return std::binary_search(g.rechecked.begin(), g.rechecked.end(), pc);
}

}  // namespace kopt_sim

using namespace kopt_sim;

// A store, a barrier or another atomic operation between the load and this one would be an effect of
// the loaded value that nothing has checked.
extern "C" void kopt_sim_rechecks(const volatile void* p, unsigned bytes, const void* expected) {
  if (!g.learns) return;
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  for (const RecentLoad& load : g.fiber->recent) {
    if (load.address != address || load.bytes != bytes || load.when != g.stamp) continue;
    if (expected != nullptr && std::memcmp(expected, &load.value, bytes) != 0) continue;
    auto* const end = g.report->rechecked + kMaxRechecked;
    auto* const place = std::find_if(g.report->rechecked, end, [&load](std::uint64_t known) {
      return known == 0 || known == load.pc;
    });
    if (place != end) *place = load.pc;
  }
}
