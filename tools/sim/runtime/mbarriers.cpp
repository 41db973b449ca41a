// mbarriers: barriers in shared memory that count arrivals, and bytes of copies that are under way.
// What a barrier counts lands when a thread waits for it (mbarrier_steps.cpp).
#include "mbarriers.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "../include/kopt_sim/runtime_interface.h"
#include "race_detector.h"

namespace kopt_sim {

namespace {

// What the memory of an mbarrier holds here: its state is kept by its address.
constexpr std::uint64_t kMbarrierMark = 0x6b6f70746d626172;

void require_mark(std::uintptr_t address, std::uintptr_t pc) {
  if (std::memcmp(reinterpret_cast<const void*>(address), &kMbarrierMark, 8) != 0)
    stop_at_mbarrier("something else was stored over the mbarrier", pc);
}

}  // namespace

void stop_at_mbarrier(const char* note, std::uintptr_t pc) {
  FaultRecord record = describe_fault(Fault::crash, pc);
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

void make_mbarrier(std::uintptr_t address, std::uint32_t arrivals) {
  std::memcpy(reinterpret_cast<void*>(address), &kMbarrierMark, sizeof kMbarrierMark);
  g.block->mbarriers[address] = {arrivals, arrivals, 0, 0, false, false};
}

Mbarrier& find_mbarrier(Block& block, std::uintptr_t address, std::uintptr_t pc) {
  const auto found = block.mbarriers.find(address);
  if (found == block.mbarriers.end()) {
    FaultRecord record = describe_fault(Fault::uninitialized_read, pc);
    std::snprintf(record.variable, sizeof record.variable, "mbarrier");
    record.bytes = record.variable_bytes = 8;
    std::snprintf(record.note, sizeof record.note, "the mbarrier was not initialised%s",
                  &block == g.block ? "" : " by the block that the value is sent to");
    stop_with(record);
  }
  if (&block == g.block) require_mark(address, pc);  // another one's memory lies elsewhere
  return found->second;
}

void complete_if_due(std::uintptr_t address, Mbarrier& barrier, Block& block) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  barrier.parity ^= 1;
  order_block(block, block.epoch + 1);  // whoever waited is ordered after whoever arrived
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = block.fibers[i];
    if (fiber.wait == Wait::mbarrier && fiber.mbarrier == address) fiber.wait = Wait::runnable;
  }
  refresh_stamp();
}

void count_bytes(std::uintptr_t address, unsigned bytes, std::uintptr_t pc) {
  Mbarrier& barrier = find_mbarrier(*g.block, address, pc);
  barrier.bytes -= bytes;
  complete_if_due(address, barrier, *g.block);
}

namespace {

// A store of the running thread: whoever has waited for the barrier comes after it. `parity`: of the
// phase that the values came to; one that comes when that is complete may have come before others.
void land_value(const SentValue& sent, std::uint32_t parity) {
  if (find_mbarrier(*g.block, sent.barrier, sent.pc).parity != parity) {
    FaultRecord record = describe_fault(Fault::data_race, sent.pc);
    record.bytes = sizeof sent.value;
    record.is_store = true;
    std::snprintf(record.note, sizeof record.note,
                  "more bytes are sent to block %llu than the phase waits for, before it has waited: "
                  "the phase may end without the others; a second exchange needs its own mbarrier",
                  static_cast<unsigned long long>(g.block->index));
    stop_with(record);
  }
  Access access{sent.to, sent.pc, nullptr, 0, 0, sizeof sent.value, true};
  access.lands = true;
  check_shared(access, true);
  std::memcpy(reinterpret_cast<void*>(sent.to), &sent.value, sizeof sent.value);
  count_bytes(sent.barrier, sizeof sent.value, sent.pc);
}

template <class Landing>
std::vector<Landing> take_due(std::vector<Landing>& under_way, std::uintptr_t barrier) {
  const auto is_due = [barrier](const Landing& one) { return one.barrier == barrier; };
  const auto rest = std::stable_partition(under_way.begin(), under_way.end(), is_due);
  std::vector<Landing> due(under_way.begin(), rest);
  under_way.erase(under_way.begin(), rest);
  return due;
}

}  // namespace

void land(std::uintptr_t address) {
  for (const BulkLoad& load : take_due(g.block->bulk_loads, address)) {
    // Whether it came too soon was asked when it was started, maybe by another block.
    const bool was_after = std::exchange(g.fiber->after_producer, true);
    copy_checked(load.copy);
    g.fiber->after_producer = was_after;
    note_landed(load.copy);
    count_bytes(address, load.copy.bytes, load.copy.pc);
  }
  for (const LateArrival& late : take_due(g.block->late_arrivals, address)) {
    for (const CopyGroup& group : late.copies) land_copies(group);
    Mbarrier& barrier = find_mbarrier(*g.block, address, late.pc);
    --barrier.pending;
    complete_if_due(address, barrier, *g.block);
  }
  for (const TensorCommit& commit : take_due(g.block->tensor.commits, address)) {
    end_operations(commit);
    Mbarrier& barrier = find_mbarrier(*g.block, address, commit.pc);
    --barrier.pending;
    complete_if_due(address, barrier, *g.block);
  }
  const std::vector<SentValue> values = take_due(g.block->sent_values, address);
  if (values.empty()) return;
  const std::uint32_t parity = find_mbarrier(*g.block, address, values.front().pc).parity;
  for (const SentValue& sent : values) land_value(sent, parity);
}

Fiber* find_sleeper(Block& block, std::uintptr_t address) {
  Fiber* const end = block.fibers + g.threads_per_block;
  Fiber* const found = std::find_if(block.fibers, end, [address](const Fiber& fiber) {
    return fiber.wait == Wait::mbarrier && fiber.mbarrier == address;
  });
  return found == end ? nullptr : found;
}

void land_if_awaited(std::uintptr_t address) {
  if (find_sleeper(*g.block, address) != nullptr) land(address);
}

// What was sent to a block that ends now must have come, and a phase must have waited for it.
void check_awaited(Block& block) {
  bool lost = !block.sent_values.empty() ||
              std::any_of(block.bulk_loads.begin(), block.bulk_loads.end(),
                          [](const BulkLoad& load) { return load.from_other; });
  for (const auto& [address, barrier] : block.mbarriers)
    lost |= barrier.counts_values && barrier.bytes < 0;
  if (!lost) return;
  FaultRecord record = describe_fault(Fault::data_race, 0);
  record.bytes = sizeof(SentValue::value);
  record.is_store = true;
  if (!block.sent_values.empty()) record.pc = block.sent_values.front().pc;
  std::snprintf(record.note, sizeof record.note,
                "block %llu of the cluster may end before a value that is sent to it has come: it "
                "must wait for the mbarrier until all bytes are there",
                static_cast<unsigned long long>(block.index));
  keep_fault(record);
}

}  // namespace kopt_sim
