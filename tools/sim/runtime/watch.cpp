// The accesses to a place that a race was found at, in a run of its own: stamps know of the earlier
// access only whose it was, so that its line comes from here.
#include <algorithm>

#include "race_detector.h"

namespace kopt_sim {

namespace {

constexpr std::size_t kKept = 1 << 16;  // the last ones

struct KeptAccess {
  std::uintptr_t pc;
  Stamp stamp;
  Index3 block, thread;
  std::uint32_t bytes;
  bool is_store;
};

std::vector<KeptAccess> kept;
std::size_t count = 0;

bool is_own(const KeptAccess& earlier) {
  return stamp_block(earlier.stamp) == stamp_block(g.stamp) &&
         stamp_thread(earlier.stamp) == stamp_thread(g.stamp);
}

}  // namespace

void keep_if_watched(const Access& access) {
  const Watch& watch = g.watch;
  if (access.offset >= watch.offset + watch.bytes || watch.offset >= access.offset + access.bytes)
    return;
  if (std::strncmp(access.variable, watch.variable.c_str(), sizeof(FaultRecord::variable) - 1) != 0)
    return;
  kept.resize(kKept);
  kept[count++ % kKept] = {access.pc,       g.stamp,      g.block->position,
                           g.fiber->thread, access.bytes, access.is_store};
}

// The latest access of another thread that nothing orders before this one is the other side.
void name_other_side(FaultRecord& race, bool other_stored) {
  for (std::size_t back = 1; back <= std::min(count, kKept); ++back) {
    const KeptAccess& earlier = kept[(count - back) % kKept];
    if (earlier.is_store != other_stored || is_own(earlier) || is_ordered(earlier.stamp)) continue;
    race.other_pc = earlier.pc;
    race.other_block = earlier.block;
    race.other_thread = earlier.thread;
    race.other_bytes = earlier.bytes;
    race.other_is_store = earlier.is_store;
    return;
  }
}

}  // namespace kopt_sim
