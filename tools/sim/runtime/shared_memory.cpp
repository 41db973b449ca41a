// Shared variables. The block that runs has its own at the addresses that the linker gave them;
// those of the other resident blocks lie in windows (shared_windows.cpp).
#include <algorithm>
#include <cstdio>

#include <cstring>

#include "race_detector.h"

namespace kopt_sim {

namespace {

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
  if (access.is_store)
    require_unread(owner, variable.address + access.offset, access.bytes, access.pc);
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

}  // namespace

bool check_shared(Access access, bool aligned) {
  Block* const other = other_block_at(access.address);
  return check_at(access, aligned, own_address_of(access.address), other);
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
  const std::uintptr_t address = own_address_of(access.address);
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

// Begin and end of the cells of a piece of a block's shared memory.
std::pair<Cell*, Cell*> cells_of(Block& owner, std::uintptr_t address, unsigned bytes) {
  for (std::size_t i = 0; i < g.shared.size(); ++i) {
    SharedVariable& variable = g.shared[i];
    const std::uintptr_t offset = address - variable.address;
    if (offset >= variable.bytes || bytes > variable.bytes - offset) continue;
    SharedCells& shadow = &owner == g.block ? variable.shadow : owner.shared_shadows[i];
    const unsigned shift = granule_for(offset, bytes);
    if (shift < shadow.granule_shift) split_cells(shadow, variable.bytes, shift);
    Cell* const cells = shadow.cells.data();
    return {cells + (offset >> shadow.granule_shift),
            cells + ((offset + bytes - 1) >> shadow.granule_shift) + 1};
  }
  return {nullptr, nullptr};
}

void require_reachable(Block& other, std::uintptr_t address, unsigned bytes, std::uintptr_t pc) {
  Access access{address, pc, nullptr, 0, 0, bytes, true};
  const SharedVariable* const variable = find_shared(address);
  if (variable == nullptr) stop_near_shared(access);
  access.variable = variable->name;
  access.variable_bytes = variable->bytes;
  access.offset = address - variable->address;
  require_running(access, other);
  other.was_reached = true;
}

bool is_shared(std::uintptr_t address) {
  return other_block_at(address) != nullptr || find_shared(address) != nullptr;
}

}  // namespace kopt_sim
