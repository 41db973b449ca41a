// Asynchronous copies, values sent between the blocks of a cluster, and mbarriers. What is under
// way takes effect as late as it may: when it is waited for.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../include/kopt_sim/runtime_interface.h"
#include "race_detector.h"

namespace kopt_sim {

namespace {

// A copy that is waited for asks for addresses that are multiples of its size, 16 at most.
AsyncCopy make_copy(void* to, const void* from, unsigned bytes, unsigned source_bytes,
                    std::uintptr_t pc) {
  const unsigned alignment = std::min(bytes & -bytes, 16u);
  check_alignment(to, alignment, true, pc);
  if (source_bytes != 0) check_alignment(from, alignment, false, pc);
  check_start(to, bytes, true, pc);
  check_start(from, source_bytes, false, pc);
  const AsyncCopy copy{to, from, bytes, source_bytes, pc, g.stamp};
  start_overwriting(copy);
  return copy;
}

using Groups = std::vector<std::vector<AsyncCopy>>;

Groups& made(Groups*& groups) {
  if (groups == nullptr) groups = new Groups(1);
  return *groups;
}

void wait_for(Groups& groups, unsigned groups_left) {
  while (groups.size() > groups_left + 1) {
    const std::vector<AsyncCopy> oldest = groups.front();
    groups.erase(groups.begin());
    for (const AsyncCopy& copy : oldest) copy_checked(copy);
  }
}

// What the memory of an mbarrier holds here: its state is kept by its address.
constexpr std::uint64_t kMbarrierMark = 0x6b6f70746d626172;

[[noreturn]] void stop_at_mbarrier(const char* note, std::uintptr_t pc) {
  FaultRecord record = describe_fault(Fault::crash, pc);
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

void require_mark(std::uintptr_t address, std::uintptr_t pc) {
  if (std::memcmp(reinterpret_cast<const void*>(address), &kMbarrierMark, 8) != 0)
    stop_at_mbarrier("something else was stored over the mbarrier", pc);
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

void complete_if_due(std::uintptr_t address, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  barrier.parity ^= 1;
  ++g.block->epoch;  // whoever waited is ordered after whoever arrived
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = g.block->fibers[i];
    if (fiber.wait == Wait::mbarrier && fiber.mbarrier == address) fiber.wait = Wait::runnable;
  }
  refresh_stamp();
}

void count_bytes(std::uintptr_t address, unsigned bytes, std::uintptr_t pc) {
  Mbarrier& barrier = find_mbarrier(*g.block, address, pc);
  barrier.bytes -= bytes;
  complete_if_due(address, barrier);
}

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

// Lands what counts on this barrier.
void land(std::uintptr_t address) {
  for (const BulkLoad& load : take_due(g.block->bulk_loads, address)) {
    copy_checked(load.copy);
    note_landed(load.copy);
    count_bytes(address, load.copy.bytes, load.copy.pc);
  }
  const std::vector<SentValue> values = take_due(g.block->sent_values, address);
  if (values.empty()) return;
  const std::uint32_t parity = find_mbarrier(*g.block, address, values.front().pc).parity;
  for (const SentValue& sent : values) land_value(sent, parity);
}

// Who meets others at an mbarrier comes after the producer if any of the block does: which of them
// arrived there is not followed.
void meet_block() {
  for (std::uint32_t i = 0; i < g.threads_per_block && !g.fiber->after_producer; ++i)
    g.fiber->after_producer = g.block->fibers[i].after_producer;
}

// A thread of `block` that sleeps at the barrier, null if there is none.
Fiber* find_sleeper(Block& block, std::uintptr_t address) {
  Fiber* const end = block.fibers + g.threads_per_block;
  Fiber* const found = std::find_if(block.fibers, end, [address](const Fiber& fiber) {
    return fiber.wait == Wait::mbarrier && fiber.mbarrier == address;
  });
  return found == end ? nullptr : found;
}

// Threads that already sleep at the barrier cannot land its loads themselves.
void land_if_awaited(std::uintptr_t address) {
  if (find_sleeper(*g.block, address) != nullptr) land(address);
}

std::uintptr_t own_address(void* shared, int line) {
  return reinterpret_cast<std::uintptr_t>(
      kopt_sim_map_shared(shared, kopt_sim_cluster_rank(), line));
}

}  // namespace

// What was sent to a block that ends now must have come, and a phase must have waited for it.
void check_awaited(Block& block) {
  bool lost = !block.sent_values.empty();
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

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_async_copy(void* to, const void* from, unsigned bytes, unsigned source_bytes) {
  made(g.fiber->async).back().push_back(make_copy(to, from, bytes, source_bytes, CALLER));
}

void kopt_sim_async_commit() { made(g.fiber->async).emplace_back(); }

void kopt_sim_async_wait(unsigned groups_left) { wait_for(made(g.fiber->async), groups_left); }

void kopt_sim_bulk_store(void* global, const void* shared, unsigned bytes) {
  require_proxy_fence(shared, bytes, CALLER);
  made(g.fiber->bulk_stores).back().push_back(make_copy(global, shared, bytes, bytes, CALLER));
}

void kopt_sim_bulk_commit() { made(g.fiber->bulk_stores).emplace_back(); }

void kopt_sim_bulk_wait(unsigned groups_left) { wait_for(made(g.fiber->bulk_stores), groups_left); }

void kopt_sim_mbarrier_init(void* barrier, unsigned arrivals) {
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  check_atomic(address, 8, false, CALLER);  // bounds and alignment
  if (!is_shared(address)) stop_at_mbarrier("an mbarrier must lie in shared memory", CALLER);
  std::memcpy(barrier, &kMbarrierMark, sizeof kMbarrierMark);
  g.block->mbarriers[address] = {arrivals, arrivals, 0, 0, false};
}

void kopt_sim_mbarrier_arrive(void* barrier, unsigned expected_bytes) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  Mbarrier& state = find_mbarrier(*g.block, address, CALLER);
  state.bytes += expected_bytes;
  --state.pending;
  complete_if_due(address, state);
  land_if_awaited(address);
}

void kopt_sim_mbarrier_wait(void* barrier, unsigned parity, int line) {
  settle_pending_write();
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  const Mbarrier& state = find_mbarrier(*g.block, address, CALLER);
  const auto must_wait = [&state, parity] { return state.parity == (parity & 1u); };
  meet_block();
  while (must_wait()) {
    land(address);
    if (!must_wait()) return;
    g.fiber->wait = Wait::mbarrier;
    g.fiber->mbarrier = address;
    g.fiber->line = line;
    return_to_scheduler();
    meet_block();
  }
}

void kopt_sim_bulk_load(void* shared, const void* global, unsigned bytes, unsigned source_bytes,
                        void* barrier) {
  require_proxy_fence(shared, bytes, CALLER);
  g.block->bulk_loads.push_back(
      {make_copy(shared, global, bytes, source_bytes, CALLER),
       reinterpret_cast<std::uintptr_t>(barrier)});
  land_if_awaited(reinterpret_cast<std::uintptr_t>(barrier));
}

// Checked as a store of the sender now: nothing may still use the element, and until the receiver
// has waited for the barrier nothing may use it again.
void kopt_sim_store_async(void* shared, unsigned value, void* barrier, unsigned rank, int line) {
  settle_pending_write();
  const std::uintptr_t pc = CALLER;
  Access access{reinterpret_cast<std::uintptr_t>(shared), pc, nullptr, 0, 0, sizeof value, true};
  if (!is_shared(access.address) && access.address < kArena) stop_near_shared(access);
  access.address = reinterpret_cast<std::uintptr_t>(kopt_sim_map_shared(shared, rank, line));
  const std::uintptr_t address = own_address(barrier, line);
  if (!check_shared(access, true)) stop_near_shared(access);
  if (g.pending_write_race.kind != Fault::none) stop_with(g.pending_write_race);
  Block& target = *(g.block - kopt_sim_cluster_rank() + rank);
  find_mbarrier(target, address, pc).counts_values = true;
  target.was_reached = true;
  target.sent_values.push_back({own_address(shared, line), address, value, pc});
  if (Fiber* sleeper = find_sleeper(target, address)) sleeper->wait = Wait::runnable;
}
}
