// wgmma: the threads of a warpgroup meet at each of its instructions, which orders nothing. A product
// reads its operands and writes its sums at any time between its start and the wait for its group;
// here its sums land at that wait, and not before the others of the block can do nothing else.
#include <algorithm>
#include <cstdio>

#include "../include/kopt_sim/runtime_interface.h"
#include "element_values.h"
#include "race_detector.h"
#include "warpgroup.h"

namespace kopt_sim {

namespace {

constexpr unsigned kMostSpins = 8;  // rounds in which others only spin, before products land
constexpr std::uint32_t kNoNumber = ~0u, kNoInteger = 0x80a5a5a5u;  // a NaN, two of halves

Fiber* first_of(const Fiber& fiber) {
  return &g.block->fibers[fiber.linear / kWarpgroup * kWarpgroup];
}

Warpgroup& warpgroup_of(const Fiber& fiber) {
  Block& block = *g.block;
  if (block.warpgroups.empty())
    block.warpgroups.resize((g.threads_per_block + kWarpgroup - 1) / kWarpgroup);
  return block.warpgroups[fiber.linear / kWarpgroup];
}

bool is_at(const Fiber& fiber, WarpgroupStep step, int line) {
  return fiber.wait == Wait::warpgroup && fiber.mask == static_cast<std::uint32_t>(step) &&
         fiber.line == line;
}

bool all_at(const Block& block, const Fiber& one, WarpgroupStep step, int line) {
  const std::uint32_t first = one.linear / kWarpgroup * kWarpgroup;
  if (first + kWarpgroup > g.threads_per_block) return false;
  return std::all_of(block.fibers + first, block.fibers + first + kWarpgroup,
                     [&](const Fiber& fiber) { return is_at(fiber, step, line); });
}

void release(const Fiber& one) {
  Fiber* const first = first_of(one);
  for (Fiber* fiber = first; fiber != first + kWarpgroup; ++fiber) fiber->wait = Wait::runnable;
}

// True for the last thread that comes, which does the step for all and then releases them.
bool comes_last(WarpgroupStep step, int line) {
  settle_pending_write();
  Fiber& self = *g.fiber;
  self.mask = static_cast<std::uint32_t>(step);
  self.line = line;
  self.wait = Wait::warpgroup;
  if (all_at(*g.block, self, step, line)) return true;
  return_to_scheduler();
  return false;
}

void require_alike(const Warpgroup& warpgroup, std::uintptr_t pc) {
  for (unsigned thread = 1; thread < kWarpgroup; ++thread) {
    if (*warpgroup.given[thread] == *warpgroup.given[0]) continue;
    FaultRecord record = describe_fault(Fault::barrier_divergence, pc);
    std::snprintf(record.note, sizeof record.note,
                  "threads 0 and %u of a warpgroup give different descriptors or scales to one "
                  "wgmma.mma_async: all must give the same", thread);
    stop_with(record);
  }
}

// What the registers of D hold, or will hold: the sums of the last product that writes the same ones.
std::vector<std::uint32_t> sums_before(const Warpgroup& warpgroup, const ProductInFlight& product) {
  for (auto one = warpgroup.in_flight.rbegin(); one != warpgroup.in_flight.rend(); ++one)
    if (one->places == product.places) return one->sums;
  if (std::count(warpgroup.continues, warpgroup.continues + kWarpgroup, true) != 0) {
    FaultRecord record = describe_fault(Fault::data_race, product.pc);
    std::snprintf(record.note, sizeof record.note,
                  "a wgmma.mma_async under way writes these registers in another order: "
                  "wgmma.wait_group must come between");
    stop_with(record);
  }
  std::vector<std::uint32_t> found(product.places.size());
  std::transform(product.places.begin(), product.places.end(), found.begin(),
                 [](const std::uint32_t* place) { return *place; });
  return found;
}

bool is_written_again(const Warpgroup& warpgroup, std::size_t number) {
  const auto& all = warpgroup.in_flight;
  return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(number) + 1, all.end(),
                     [&](const ProductInFlight& one) { return one.places == all[number].places; });
}

void start_product(Warpgroup& warpgroup, const Fiber* first, std::uintptr_t pc) {
  require_alike(warpgroup, pc);
  const WarpgroupProduct& given = *warpgroup.given[0];
  const unsigned count = sum_registers(given);
  const std::uint32_t poison = code_c(given.code) == Element::kS32 ? kNoInteger : kNoNumber;
  ProductInFlight product{warpgroup.groups, pc, poison, {}, {}, {}};
  if (given.a_is_shared)
    add_pieces(warpgroup_matrix(given.a, pc), extent_of_a(given), product.pieces);
  add_pieces(warpgroup_matrix(given.b, pc), extent_of_b(given), product.pieces);
  for (const WarpgroupProduct* one : warpgroup.given)
    for (unsigned i = 0; i < count; ++i)
      product.places.push_back(static_cast<std::uint32_t*>(one->sums[i]));
  read_operands(first, product, true);
  multiply(warpgroup, sums_before(warpgroup, product), product);
  for (std::uint32_t* place : product.places) *place = product.poison;
  for (unsigned thread = 0; thread < kWarpgroup; ++thread)
    mark_in_flight(first[thread], &product.places[thread * count], count, true);
  keep_pieces(*g.block, product.pieces);
  warpgroup.in_flight.push_back(std::move(product));
}

void land_sums(const ProductInFlight& product, const Fiber* first) {
  const std::size_t count = product.places.size() / kWarpgroup;
  for (std::size_t i = 0; i < product.places.size(); ++i) {
    if (*product.places[i] != product.poison) {
      g.fiber = const_cast<Fiber*>(first) + i / count;
      FaultRecord record = describe_fault(Fault::data_race, product.pc);
      std::snprintf(record.note, sizeof record.note,
                    "a register of the sums was overwritten, or its variable has ended, before "
                    "wgmma.wait_group");
      stop_with(record);
    }
    *product.places[i] = product.sums[i];
  }
  for (unsigned thread = 0; thread < kWarpgroup; ++thread)
    mark_in_flight(first[thread], &product.places[thread * count],
                   static_cast<unsigned>(count), false);
}

bool is_due(const Warpgroup& warpgroup, std::uint32_t groups_left) {
  return !warpgroup.in_flight.empty() &&
         warpgroup.in_flight.front().group + groups_left < warpgroup.groups;
}

void land(Warpgroup& warpgroup, std::uint32_t groups_left, const Fiber* first) {
  while (is_due(warpgroup, groups_left)) {
    const ProductInFlight& product = warpgroup.in_flight.front();
    read_operands(first, product, false);
    release_pieces(*g.block, product.pieces);
    if (!is_written_again(warpgroup, 0)) land_sums(product, first);
    warpgroup.in_flight.erase(warpgroup.in_flight.begin());
  }
}

}  // namespace

bool land_products(Block& block, bool others_spin) {
  if (others_spin && ++block.rounds_of_spins < kMostSpins) return false;
  block.rounds_of_spins = 0;
  for (std::size_t i = 0; i < block.warpgroups.size(); ++i) {
    Fiber& first = block.fibers[i * kWarpgroup];
    if (!all_at(block, first, WarpgroupStep::wait, first.line)) continue;
    first.lands = true;
    first.wait = Wait::runnable;
    return true;
  }
  return false;
}

}  // namespace kopt_sim

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void kopt_sim_warpgroup_fence(int line) {
  if (comes_last(WarpgroupStep::fence, line)) release(*g.fiber);
  fence_registers();
}

void kopt_sim_warpgroup_product(const WarpgroupProduct* product, int line) {
  Fiber& self = *g.fiber;
  Warpgroup& warpgroup = warpgroup_of(self);
  warpgroup.continues[self.linear % kWarpgroup] = check_registers(*product, CALLER);
  warpgroup.given[self.linear % kWarpgroup] = product;
  if (!comes_last(WarpgroupStep::product, line)) return;
  start_product(warpgroup, first_of(self), CALLER);
  release(self);
}

void kopt_sim_warpgroup_commit(int line) {
  Fiber& self = *g.fiber;
  Warpgroup& warpgroup = warpgroup_of(self);
  if (!comes_last(WarpgroupStep::commit, line)) return;
  ++warpgroup.groups;
  release(self);
}

void kopt_sim_warpgroup_wait(unsigned groups_left, int line) {
  Fiber& self = *g.fiber;
  Warpgroup& warpgroup = warpgroup_of(self);
  if (comes_last(WarpgroupStep::wait, line)) {
    if (!is_due(warpgroup, groups_left)) return release(self);
    return_to_scheduler();
  }
  if (!self.lands) return;
  self.lands = false;
  land(warpgroup, groups_left, first_of(self));
  release(self);
}
}
