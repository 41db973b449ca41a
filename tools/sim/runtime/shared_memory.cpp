// Shared variables. The block that runs has its own at the addresses that the linker gave them;
// those of the other resident blocks lie in windows, one a block, laid out alike. A block of a
// cluster reaches another one's through its window.
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

std::uintptr_t own_address_of(std::uintptr_t address) {
  return (address - windows) % window_bytes - kMargin + lowest;
}

// Cells are made for 4 bytes; the first narrower access splits them.
void split_cells(SharedCells& shadow, std::uint64_t bytes, unsigned shift) {
  const unsigned parts = 1u << (shadow.granule_shift - shift);
  std::vector<Cell> finer((bytes >> shift) + 1);
  for (std::size_t i = 0; i < finer.size(); ++i)
    if (i / parts < shadow.cells.size()) finer[i] = shadow.cells[i / parts];
  shadow.cells.swap(finer);
  shadow.granule_shift = shift;
}

unsigned granule_for(std::uintptr_t address, unsigned bytes) {
  const std::uintptr_t bits = address | bytes;
  return (bits & 3u) == 0 ? 2 : (bits & 1u) == 0 ? 1 : 0;
}

// What nothing has written holds something else in each run: a load that gets it is no fault in
// itself, and one whose value is used shows in what the kernel computes.
void fill_unwritten(const Cell* cell, const Cell* end, const Access& access, unsigned shift) {
  const auto is_set = [](Stamp stamp) { return is_valid_here(stamp) && is_of_resident(stamp); };
  std::uintptr_t address = access.address >> shift << shift;
  for (; cell != end; ++cell, address += std::uintptr_t{1} << shift)
    if (!is_set(load_stamp(cell->write)) && !is_set(load_stamp(cell->met)))
      std::memset(reinterpret_cast<void*>(address), g.filler, std::size_t{1} << shift);
}

// Checks an access that begins in `variable`; `owner` is the block whose variable it is.
void check_variable(Access& access, bool aligned, std::size_t number, Block& owner) {
  SharedVariable& variable = g.shared[number];
  if (access.offset + access.bytes > variable.bytes) stop_out_of_bounds(access, "");
  if (aligned && (access.address & (access.bytes - 1)) != 0)
    stop_with(describe_access(Fault::misaligned, access));
  SharedCells& shadow = &owner == g.block ? variable.shadow : owner.shared_shadows[number];
  const unsigned shift = granule_for(access.offset, access.bytes);
  if (shift < shadow.granule_shift) split_cells(shadow, variable.bytes, shift);
  if (!access.lands)
    (access.is_store ? g.report->shared_store_bytes : g.report->shared_load_bytes) += access.bytes;
  Cell* first = shadow.cells.data() + (access.offset >> shadow.granule_shift);
  Cell* last =
      shadow.cells.data() + ((access.offset + access.bytes - 1) >> shadow.granule_shift);
  const bool fills = g.filler >= 0 && !access.is_store;
  if (fills) fill_unwritten(first, last + 1, access, shadow.granule_shift);
  check_shared_cells(first, last + 1, access, fills);
}

constexpr char kEnded[] =
    "block %llu of the cluster %s, and its shared memory with it: a cluster barrier must come "
    "between the last use and the end";

// Shared memory of another block is there from its start to its end.
void require_running(const Access& access, const Block& owner) {
  const auto number = static_cast<unsigned long long>(owner.index);
  FaultRecord record = describe_access(Fault::none, access);
  if (&owner == g.block) {
    record.kind = Fault::unsupported;
    std::snprintf(record.note, sizeof record.note,
                  "the address of this block's shared memory was made by another block");
  } else if (owner.alive == 0) {
    record.kind = Fault::data_race;
    std::snprintf(record.note, sizeof record.note, kEnded, number, "has ended");
  } else if (!g.block->met_others) {
    record.kind = Fault::data_race;
    std::snprintf(record.note, sizeof record.note,
                  "block %llu of the cluster need not have started: no cluster barrier comes before",
                  number);
  }
  if (record.kind != Fault::none) stop_with(record);
}

// `other`: the block whose shared memory is accessed, null for the running one's own.
bool check_at(Access& access, bool aligned, std::uintptr_t own_address, Block* other) {
  for (std::size_t i = 0; i < g.shared.size(); ++i) {
    const std::uintptr_t offset = own_address - g.shared[i].address;
    if (offset >= g.shared[i].bytes) continue;
    access.variable = g.shared[i].name;
    access.variable_bytes = g.shared[i].bytes;
    access.offset = offset;
    if (other != nullptr) {
      require_running(access, *other);
      other->was_reached = true;
    }
    check_variable(access, aligned, i, other == nullptr ? *g.block : *other);
    return true;
  }
  return false;
}

[[noreturn]] void stop_mapping(int line, const char* note) {
  FaultRecord record = describe_fault(Fault::out_of_bounds, 0);
  record.line = line;
  std::snprintf(record.note, sizeof record.note, "%s", note);
  stop_with(record);
}

}  // namespace

bool check_shared(Access access, bool aligned) {
  if (!is_in_windows(access.address)) return check_at(access, aligned, access.address, nullptr);
  const std::uintptr_t own_address = own_address_of(access.address);
  return check_at(access, aligned, own_address, &window_owner(access.address));
}

// Where other blocks did access the shared memory of one that ends now, but need not have by now.
void check_end(Block& block) {
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i)
    g.fiber->phase = std::max(g.fiber->phase, block.fibers[i].phase);
  for (const SharedVariable& variable : g.shared) {
    for (const Cell& cell : variable.shadow.cells) {
      for (const Stamp stamp : {cell.read, cell.write, cell.met}) {
        if (!is_valid_here(stamp) || is_ordered(stamp)) continue;
        if (stamp_many(stamp) != 3 && stamp_block(stamp) == stamp_block(g.stamp)) continue;
        const auto offset = static_cast<std::uint64_t>(&cell - variable.shadow.cells.data())
                            << variable.shadow.granule_shift;
        Access access{variable.address + offset, g.last_pc, variable.name, offset, variable.bytes,
                      1u << variable.shadow.granule_shift, stamp != cell.read};
        FaultRecord record = describe_access(Fault::data_race, access);
        std::snprintf(record.note, sizeof record.note, kEnded,
                      static_cast<unsigned long long>(block.index), "may end before another uses it");
        return keep_fault(record);
      }
    }
  }
}

// Names the shared variable that lies next to an address outside every variable.
void stop_near_shared(Access access) {
  const std::uintptr_t address =
      is_in_windows(access.address) ? own_address_of(access.address) : access.address;
  const SharedVariable* nearest = nullptr;
  std::int64_t least = 0;
  for (const SharedVariable& variable : g.shared) {
    const auto offset = static_cast<std::int64_t>(address - variable.address);
    const std::int64_t distance =
        offset < 0 ? -offset : offset - static_cast<std::int64_t>(variable.bytes);
    if (distance > 1 << 20 || variable.bytes == 0) continue;
    if (nearest == nullptr || distance < least) {
      nearest = &variable;
      least = distance;
    }
  }
  if (nearest == nullptr) stop_out_of_bounds(access, "the address belongs to no buffer");
  access.variable = nearest->name;
  access.variable_bytes = nearest->bytes;
  access.offset = address - nearest->address;
  stop_out_of_bounds(access, "");
}

const SharedVariable* find_shared(std::uintptr_t address) {
  for (const SharedVariable& variable : g.shared)
    if (address - variable.address < variable.bytes) return &variable;
  return nullptr;
}

// Begin and end of the cells of a piece of this block's shared memory.
std::pair<Cell*, Cell*> own_cells(std::uintptr_t address, unsigned bytes) {
  for (SharedVariable& variable : g.shared) {
    const std::uintptr_t offset = address - variable.address;
    if (offset >= variable.bytes || bytes > variable.bytes - offset) continue;
    SharedCells& shadow = variable.shadow;
    const unsigned shift = granule_for(offset, bytes);
    if (shift < shadow.granule_shift) split_cells(shadow, variable.bytes, shift);
    Cell* const cells = shadow.cells.data();
    return {cells + (offset >> shadow.granule_shift),
            cells + ((offset + bytes - 1) >> shadow.granule_shift) + 1};
  }
  return {nullptr, nullptr};
}

bool is_shared(std::uintptr_t address) {
  return is_in_windows(address) || find_shared(address) != nullptr;
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
  const std::uintptr_t here = is_in_windows(address) ? own_address_of(address) : address;
  if (rank == own) return reinterpret_cast<void*>(here);
  return reinterpret_cast<void*>(in_window(*(g.block - own + rank), here));
}

unsigned kopt_sim_shared_rank(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!is_in_windows(address)) return kopt_sim_cluster_rank();
  return window_owner(address).position.x % g.launch->cluster.x;
}
}
