// Windows onto the shared memory of the resident blocks that do not run, one a block, laid out as the
// variables are. A block of a cluster reaches another one's through its window.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "race_detector.h"

namespace kopt_sim {

namespace {

constexpr std::uintptr_t kMargin = 1 << 20;  // around a window: an index that runs away stays in it
constexpr std::uintptr_t kPage = 4096;

std::uintptr_t windows = 0;  // none while a block is resident alone
std::uintptr_t window_bytes = 0;
std::uintptr_t lowest = 0;       // address of a block's own shared memory, at a page
Block* shared_owner = nullptr;  // whose contents the shared variables hold

std::uintptr_t in_window(const Block& block, std::uintptr_t own_address) {
  const auto number = static_cast<std::uintptr_t>(&block - g.resident.data());
  return windows + number * window_bytes + kMargin + (own_address - lowest);
}

bool is_in_windows(std::uintptr_t address) {
  return windows != 0 && address - windows < window_bytes * g.resident.size();
}

Block& window_owner(std::uintptr_t address) {
  return g.resident[(address - windows) / window_bytes];
}

[[noreturn]] void stop_mapping(int line, const char* note) {
  FaultRecord record = describe_fault(Fault::out_of_bounds, 0);
  record.line = line;
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

}  // namespace

Block* other_block_at(std::uintptr_t address) {
  return is_in_windows(address) ? &window_owner(address) : nullptr;
}

std::uintptr_t own_address_of(std::uintptr_t address) {
  return is_in_windows(address) ? (address - windows) % window_bytes - kMargin + lowest : address;
}

// Resident blocks use the same addresses for their own variables: this tells them apart.
std::uintptr_t address_among_blocks(std::uintptr_t address) {
  return windows == 0 || is_in_windows(address) || !is_shared(address)
             ? address
             : in_window(*g.block, address);
}

// Makes room for the shared memory of `count` resident blocks; there are as many to the end.
void map_shared_windows(std::uint64_t count) {
  shared_owner = nullptr;
  if (windows != 0 || count == 1 || g.shared.empty()) return;
  lowest = g.shared.front().address;
  std::uintptr_t end = 0;
  for (const SharedVariable& variable : g.shared) {
    lowest = std::min(lowest, variable.address);
    end = std::max(end, variable.address + variable.bytes);
  }
  lowest &= ~(kPage - 1);
  window_bytes = (end - lowest + 2 * kMargin + kPage - 1) & ~(kPage - 1);
  void* memory = mmap(nullptr, window_bytes * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("kopt-sim: cannot map shared memory");
    std::exit(70);
  }
  windows = reinterpret_cast<std::uintptr_t>(memory);
}

void make_shared_shadows(Block& block) {
  block.shared_shadows.clear();
  for (const SharedVariable& variable : g.shared) {
    block.shared_shadows.push_back({std::vector<Cell>((variable.bytes >> 2) + 1), 2});
    std::memset(reinterpret_cast<void*>(in_window(block, variable.address)), g.poison,
                variable.bytes);
  }
}

// Puts what the block's shared variables hold in place, and what is there back into its window.
void place_shared(Block& block) {
  if (shared_owner == &block || g.resident.size() == 1) return;
  for (std::size_t i = 0; i < g.shared.size(); ++i) {
    SharedVariable& variable = g.shared[i];
    auto* memory = reinterpret_cast<void*>(variable.address);
    if (shared_owner != nullptr) {
      std::memcpy(reinterpret_cast<void*>(in_window(*shared_owner, variable.address)), memory,
                  variable.bytes);
      std::swap(shared_owner->shared_shadows[i], variable.shadow);
    }
    std::memcpy(memory, reinterpret_cast<void*>(in_window(block, variable.address)),
                variable.bytes);
    std::swap(block.shared_shadows[i], variable.shadow);
  }
  shared_owner = &block;
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

unsigned kopt_sim_cluster_size() { return g.launch->cluster.x; }
unsigned kopt_sim_cluster_rank() { return g.block->position.x % g.launch->cluster.x; }

void* kopt_sim_map_shared(const void* pointer, unsigned rank, int line) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const unsigned size = kopt_sim_cluster_size();
  char note[120];
  if (rank >= size) {
    std::snprintf(note, sizeof note, "rank %u of a cluster of %u blocks", rank, size);
    stop_mapping(line, note);
  }
  if (!is_shared(address)) stop_mapping(line, "the address to map is not in shared memory");
  const unsigned own = kopt_sim_cluster_rank();
  const std::uintptr_t here = own_address_of(address);
  if (rank == own) return reinterpret_cast<void*>(here);
  return reinterpret_cast<void*>(in_window(*(g.block - own + rank), here));
}

unsigned kopt_sim_shared_rank(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const Block* const other = other_block_at(address);
  if (other == nullptr) return kopt_sim_cluster_rank();
  return other->position.x % g.launch->cluster.x;
}
}
