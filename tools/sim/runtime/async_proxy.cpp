// Bulk copies, wgmma and tcgen05 work through the async proxy: what a thread stores to shared memory reaches
// them only behind fence.proxy.async, on the way from the store to the copy or product.
#include <algorithm>
#include <cstdio>

#include "../include/kopt_sim/runtime_interface.h"
#include "race_detector.h"

namespace kopt_sim {

namespace {

bool has_landed(std::uintptr_t address, Stamp store) {
  auto after = g.block->landed.upper_bound(address);
  if (after == g.block->landed.begin()) return false;
  const auto& [begin, landed] = *--after;
  return address - begin < landed.bytes && landed.stamp == store;
}

// A fence in the store's own interval counts only for its thread and, on the copying thread's side,
// within the warp; which of the two came first there is not followed.
bool lacks_fence(Stamp store) {
  if ((store & kValid) == 0 || stamp_block(store) != stamp_block(g.stamp)) return false;
  const std::uint32_t fence = stamp_epoch(store) + 1;
  const std::uint32_t writer = stamp_thread(store);
  if (g.block->proxy_epoch > fence || g.block->fibers[writer].proxy_epoch >= fence) return false;
  return writer / 32 != g.fiber->linear / 32 || g.fiber->proxy_epoch < fence;
}

}  // namespace

void require_proxy_fence(const volatile void* shared, unsigned bytes, std::uintptr_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(shared);
  const SharedVariable* const variable = find_shared(address);
  if (variable == nullptr) return;
  const unsigned shift = variable->shadow.granule_shift;
  const std::uintptr_t offset = address - variable->address;
  const std::uintptr_t end = std::min<std::uintptr_t>(offset + bytes, variable->bytes);
  for (std::uintptr_t i = offset >> shift; i < (end + (1u << shift) - 1) >> shift; ++i) {
    const Stamp store = variable->shadow.cells[i].write;
    if (!lacks_fence(store) || has_landed(variable->address + (i << shift), store)) continue;
    Access access{address, pc, variable->name, i << shift, variable->bytes, 1u << shift, false};
    FaultRecord record = describe_access(Fault::data_race, access);
    std::snprintf(record.note, sizeof record.note,
                  "thread %u of the same block stored to it and no fence_proxy_async() lies between: "
                  "a bulk copy, wgmma or tcgen05 need not see the store",
                  stamp_thread(store));
    stop_with(record);
  }
}

void note_landed(const AsyncCopy& copy) {
  g.block->landed[reinterpret_cast<std::uintptr_t>(copy.to)] = {copy.bytes, g.stamp};
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

void kopt_sim_proxy_fence() {
  g.fiber->proxy_epoch = stamp_epoch(g.stamp) + 1;
  g.block->proxy_epoch = std::max(g.block->proxy_epoch, g.fiber->proxy_epoch);
}

void kopt_sim_require_bulk(const void* to, const void* from, unsigned bytes) {
  const auto pc = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  check_alignment(to, 16, true, pc);
  check_alignment(from, 16, false, pc);
  if (bytes % 16 == 0) return;
  FaultRecord record = describe_fault(Fault::misaligned, pc);
  record.bytes = bytes;
  std::snprintf(record.note, sizeof record.note,
                "a bulk copy moves a multiple of 16 bytes: %u is none", bytes);
  stop_with(record);
}
}
