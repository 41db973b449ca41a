// Coalescing of sampled warps: which 32-byte sectors a warp-wide access touches. The lanes of a
// warp run one after another here, so the k-th access of each lane at one instruction is put
// together as one request.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "state.h"

namespace kopt_sim {

namespace {

constexpr std::size_t kMaxEntries = 1 << 16;
constexpr std::uint64_t kSectorBytes = 32;

bool is_sampled_block(std::uint64_t index) {
  const Index3& grid = g.launch->grid;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  return index == 0 || index == blocks / 2 || index == blocks - 1;
}

unsigned buffer_of(const TraceEntry& entry) {
  return static_cast<unsigned>((entry.address - kArena) >> kSlotBits);
}

// Counts the sectors of the request, each once.
void add_request(unsigned buffer, const std::vector<const TraceEntry*>& lanes) {
  std::vector<std::uint64_t> sectors;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const TraceEntry* entry : lanes) {
    const std::uint64_t first = entry->address / kSectorBytes;
    const std::uint64_t last = (entry->address + entry->bytes - 1) / kSectorBytes;
    for (std::uint64_t sector = first; sector <= last; ++sector) sectors.push_back(sector);
    spans.emplace_back(entry->address, entry->address + entry->bytes);
  }
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  std::sort(spans.begin(), spans.end());
  std::uint64_t distinct = 0, covered = 0;
  for (const auto& [begin, end] : spans) {
    const std::uint64_t from = std::max(begin, covered);
    if (end > from) distinct += end - from;
    covered = std::max(covered, end);
  }
  BufferCounters& counters = g.report->buffers[buffer];
  ++counters.requests;
  counters.sectors += sectors.size();
  counters.ideal_sectors += (distinct + kSectorBytes - 1) / kSectorBytes;
}

// Puts the traces of the lanes of one warp together, in the order of the first lane that has them.
void group_warp(const Fiber* lanes, unsigned count) {
  std::map<std::pair<std::uintptr_t, unsigned>, std::size_t> places;
  std::vector<std::vector<const TraceEntry*>> requests;
  for (unsigned lane = 0; lane < count; ++lane) {
    if (lanes[lane].trace == nullptr) return;
    std::unordered_map<std::uintptr_t, unsigned> occurrences;
    std::uint32_t last_epoch = ~0u;
    for (const TraceEntry& entry : *lanes[lane].trace) {
      const std::pair key{entry.pc, occurrences[entry.pc]++};
      const std::size_t place = places.try_emplace(key, requests.size()).first->second;
      if (place == requests.size()) requests.emplace_back();
      requests[place].push_back(&entry);
      if (!entry.is_store && entry.epoch != last_epoch) {
        ++g.report->sampled_load_phases;
        last_epoch = entry.epoch;
      }
    }
    ++g.report->sampled_threads;
    g.report->sampled_accesses += lanes[lane].trace->size();
  }
  for (const auto& entries : requests) add_request(buffer_of(*entries[0]), entries);
}

}  // namespace

void trace_access(std::uintptr_t pc, std::uintptr_t address, unsigned bytes, bool is_store) {
  std::vector<TraceEntry>& trace = *g.fiber->trace;
  if (trace.size() < kMaxEntries)
    trace.push_back({pc, address, bytes, g.block->epoch, is_store});
}

void start_trace(Block& block) {
  if (!is_sampled_block(block.index) || g.schedule_seed != 0) return;
  const auto threads = static_cast<std::uint32_t>(g.threads_per_block);
  const std::uint32_t last_warp = (threads - 1) / 32 * 32;
  for (std::uint32_t i = 0; i < threads; ++i)
    if (i < 32 || i >= last_warp) block.fibers[i].trace = new std::vector<TraceEntry>;
}

void finish_trace(Block& block) {
  const auto threads = static_cast<std::uint32_t>(g.threads_per_block);
  for (std::uint32_t first = 0; first < threads; first += 32)
    group_warp(block.fibers + first, std::min(32u, threads - first));
  for (std::uint32_t i = 0; i < threads; ++i) {
    delete block.fibers[i].trace;
    block.fibers[i].trace = nullptr;
  }
}

}  // namespace kopt_sim
