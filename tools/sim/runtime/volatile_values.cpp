// What volatile stores wrote over: nothing but a wait tells a thread which of two values it sees, so
// that its first load behind a store that it is not ordered after still gives the old one. A thread
// that spins on a flag reads again; one that takes `volatile` for a barrier computes with old values.
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "race_detector.h"

namespace kopt_sim {

namespace {

struct Overwritten {
  std::uint8_t value[16];
  unsigned bytes;
  Stamp store;
  std::unordered_set<Stamp> served;  // blocks and threads
};
std::unordered_map<std::uintptr_t, Overwritten> overwritten;

// In memory for one load: what belongs there, and the accesses that were left before a switch.
struct {
  std::uint8_t value[16];
  std::uintptr_t address;
  unsigned bytes;
  std::uint32_t accesses_until_switch;
} served;

}  // namespace

void keep_overwritten(std::uintptr_t place, const Access& access) {
  if (access.bytes > sizeof Overwritten::value) return;
  Overwritten& kept = overwritten[place];
  std::memcpy(kept.value, reinterpret_cast<const void*>(access.address), access.bytes);
  kept.bytes = access.bytes;
  kept.store = g.stamp;
  kept.served.clear();
}

// Puts the old value in place for the load that follows. False: there is none, or it was served.
bool serve_overwritten(std::uintptr_t place, const Access& access) {
  if (overwritten.empty()) return false;
  const auto found = overwritten.find(place);
  if (found == overwritten.end() || found->second.bytes != access.bytes) return false;
  const bool shared = access.address - kArena >= std::uintptr_t{kMaxBuffers} << kSlotBits;
  if (shared ? !is_of_resident(found->second.store) : !g.single_process) return false;
  if (is_ordered(found->second.store)) return false;
  const Stamp reader = Stamp{stamp_block(g.stamp)} << 10 | stamp_thread(g.stamp);
  if (!found->second.served.insert(reader).second) return false;
  auto* const memory = reinterpret_cast<void*>(access.address);
  std::memcpy(served.value, memory, access.bytes);
  std::memcpy(memory, found->second.value, access.bytes);
  served.address = access.address;
  served.bytes = access.bytes;
  served.accesses_until_switch = g.accesses_until_switch;
  g.accesses_until_switch = 1;  // the next access takes it back
  return true;
}

bool take_back_served() {
  if (served.bytes == 0) return false;
  std::memcpy(reinterpret_cast<void*>(served.address), served.value, served.bytes);
  served.bytes = 0;
  g.accesses_until_switch = served.accesses_until_switch;
  return true;
}

}  // namespace kopt_sim
