// Runs blocks: which thread goes next, and what lets waiting threads go on.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "mbarriers.h"
#include "race_detector.h"

namespace kopt_sim {

State g;

void refresh_stamp() {
  const Stamp block = (g.stamp_block_base + g.block->index) & 0xfffffu;
  const bool ahead =
      g.fiber->arrived && !g.fiber->arrived_relaxed && g.fiber->arrival_phase == g.phase;
  g.stamp = kValid | block << 42 | Stamp{g.block->epoch & 0x3ffffu} << 24 |
            (ahead ? kArrived : 0) | Stamp{g.fiber->lane_epoch & kMaxLaneEpoch} << 12 |
            g.fiber->linear;
}

namespace {

std::vector<Fiber> fibers;

Index3 unflatten(std::uint64_t index, const Index3& extent) {
  return {static_cast<std::uint32_t>(index % extent.x),
          static_cast<std::uint32_t>(index / extent.x % extent.y),
          static_cast<std::uint32_t>(index / extent.x / extent.y)};
}

void enter_block(Block& block, std::uint64_t index, unsigned position) {
  const auto threads = static_cast<std::uint32_t>(g.threads_per_block);
  block.index = index;
  block.position = unflatten(index, g.launch->grid);
  block.fibers = &fibers[position * threads];
  block.warps.assign((threads + 31) / 32, Warp{});
  order_block(block, g.synced[0].all);
  block.alive = threads;
  block.at_barrier = block.at_cluster = block.at_grid = block.arrived = 0;
  block.met_others = block.was_reached = false;
  block.votes = block.last_votes = 0;
  block.mbarriers.clear();
  block.warpgroups.clear();
  block.operand_readers.clear();
  block.products_in_flight = block.rounds_of_spins = 0;
  block.tensor = {};
  block.named_barriers.clear();
  block.met.clear();
  block.bulk_loads.clear();
  block.late_arrivals.clear();
  block.sent_values.clear();
  block.landed.clear();
  block.proxy_epoch = 0;
  for (std::uint32_t i = 0; i < threads; ++i) {
    Fiber& fiber = block.fibers[i];
    delete fiber.async;
    delete fiber.bulk_stores;
    delete fiber.registers;
    fiber = Fiber{};
    fiber.linear = i;
    fiber.thread = unflatten(i, g.launch->block);
    fiber.after_producer = !g.launch->dependent;
    block.warps[i / 32].alive |= 1u << (i % 32);
    prepare_fiber(fiber, position * threads + i);
  }
}

void leave_fiber(Fiber& fiber) {
  Block& block = *g.block;
  --block.alive;
  if (block.alive == 0) check_tensor_memory(block);
  forget_arrival(block, fiber);
  if (block.alive == 0 && block.was_reached) {
    check_awaited(block);
    check_end(block);
  }
  block.warps[fiber.linear / 32].alive &= ~(1u << (fiber.linear % 32));
  // Lanes that wait for this one need not any longer.
  const Fiber* lanes = &block.fibers[fiber.linear & ~31u];
  for (std::uint32_t rest = block.warps[fiber.linear / 32].alive; rest != 0; rest &= rest - 1) {
    const Fiber& other = lanes[__builtin_ctz(rest)];
    if (other.wait != Wait::runnable) release_if_complete(other);
  }
  leave_named_barriers(fiber);
}

struct Turn {
  bool ran;       // some thread did
  bool gave_way;  // some thread could have gone on: it may spin on what others must do first
};

// Lanes run one after another here. Those that ask who is active have converged when none of the
// warp can run: it is they who are at the same line. False: none asked.
bool converge(Block& block, std::uint32_t first, std::uint32_t last) {
  std::uint32_t lanes = 0;
  int line = 0;
  for (std::uint32_t linear = first; linear < last; ++linear) {
    const Fiber& fiber = block.fibers[linear];
    if (fiber.wait == Wait::runnable) return false;
    if (fiber.wait != Wait::converge) continue;
    if (lanes == 0) line = fiber.line;
    if (fiber.line == line) lanes |= 1u << (linear - first);
  }
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Fiber& fiber = block.fibers[first + static_cast<unsigned>(__builtin_ctz(rest))];
    fiber.wait = Wait::runnable;
    fiber.exchange_lanes = lanes;
  }
  return lanes != 0;
}

Turn run_warp(Block& block, unsigned number, bool until_blocked) {
  const auto threads = static_cast<std::uint32_t>(g.threads_per_block);
  const std::uint32_t first = number * 32, last = std::min(first + 32, threads);
  const std::uint32_t start = g.schedule_seed == 0 ? 0 : g.random() % 32;
  const std::uint32_t flip = g.schedule_seed == 0 ? 0 : g.random() % 32;
  Turn turn{};
  bool again = true;
  while (again && !g.stopping) {
    again = false;
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint32_t linear = first + (((i + start) % 32) ^ flip);
      if (linear >= last) continue;
      Fiber& fiber = block.fibers[linear];
      if (fiber.wait != Wait::runnable) continue;
      switch_to(fiber);
      if (fiber.wait == Wait::done) leave_fiber(fiber);
      turn.gave_way |= fiber.wait == Wait::runnable;
      turn.ran = true;
      again = until_blocked && !turn.gave_way;
    }
    if (converge(block, first, last)) again = true;
  }
  return turn;
}

void pass_barrier(Block& block) {
  block.last_votes = block.votes;
  block.votes = block.at_barrier = 0;
  order_block(block, block.epoch + 1);
  ++g.report->barriers;
  for (Warp& warp : block.warps) {
    if (!warp.synced) continue;
    for (auto& row : warp.seen) std::fill(std::begin(row), std::end(row), std::uint16_t{0});
    warp.synced = false;
  }
  std::uint32_t phase = 0;
  bool after_producer = false;
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    phase = std::max(phase, block.fibers[i].phase);
    after_producer |= block.fibers[i].after_producer;
  }
  int line = 0;
  for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
    Fiber& fiber = block.fibers[i];
    if (fiber.wait != Wait::barrier) continue;
    fiber.phase = phase;
    fiber.after_producer = after_producer;
    if (line == 0) line = fiber.line;
    if (fiber.line != line) {
      g.fiber = &fiber;
      FaultRecord record = describe_fault(Fault::barrier_divergence, 0);
      record.line = line;
      std::snprintf(record.note, sizeof record.note,
                    "threads of one block meet at different barriers, lines %d and %d", line,
                    fiber.line);
      keep_fault(record);
    }
    fiber.lane_epoch = 0;
    fiber.wait = Wait::runnable;
  }
}

// True if other resident blocks may let a thread of a block go on of which none can run.
bool others_may_help(const Block& block) {
  if (block.at_grid + block.at_cluster != 0) return true;
  return g.resident.size() > 1 &&
         std::any_of(block.fibers, block.fibers + g.threads_per_block,
                     [](const Fiber& fiber) { return fiber.wait == Wait::mbarrier; });
}

// Runs until every thread is done or waits for other blocks, or others deserve a turn. False:
// nothing could run.
bool run_block(Block& block) {
  g.block = &block;
  blockIdx = {block.position.x, block.position.y, block.position.z};
  place_shared(block);
  std::vector<unsigned> order(block.warps.size());
  std::iota(order.begin(), order.end(), 0u);
  bool any = false;
  while (!g.stopping) {
    if (g.schedule_seed != 0) std::shuffle(order.begin(), order.end(), g.random);
    Turn round{};
    for (const unsigned warp : order) {
      const Turn turn = run_warp(block, warp, g.schedule_seed == 0);
      round.ran |= turn.ran;
      round.gave_way |= turn.gave_way;
    }
    any |= round.ran;
    if (g.stopping || block.alive == 0) break;
    if (block.at_barrier == block.alive) {
      pass_barrier(block);
    } else if ((!round.ran || round.gave_way) && land_products(block, round.ran)) {
      continue;
    } else if (round.gave_way && g.resident.size() > 1) {
      if (g.schedule_seed == 0 || g.random() % 16 == 0) break;
    } else if (!round.ran) {
      if (others_may_help(block)) break;
      if (!fail_tries(block)) report_deadlock(block);
    }
  }
  return any;
}

// The block to tell of where nothing can go on: rather one whose own threads disagree than one that
// waits for values, and rather that than one at a barrier among blocks.
Block& stuck_block() {
  const auto rank = [](const Block& block) {
    if (block.alive == 0) return 3;
    int least = 2;
    for (std::uint32_t i = 0; i < g.threads_per_block; ++i) {
      const Wait wait = block.fibers[i].wait;
      if (wait == Wait::mbarrier) least = std::min(least, 1);
      else if (wait != Wait::done && wait != Wait::cluster && wait != Wait::grid) return 0;
    }
    return least;
  };
  return *std::min_element(g.resident.begin(), g.resident.end(),
                           [rank](const Block& a, const Block& b) { return rank(a) < rank(b); });
}

bool fail_tries(std::vector<Block>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](Block& block) { return fail_tries(block); });
}

}  // namespace

// Runs `count` blocks from number `first` on, all of them resident at once.
static void run_resident(std::uint64_t first, std::uint64_t count) {
  auto& resident = g.resident;
  resident.resize(count);
  g.resident_first = g.stamp_block_base + first;
  g.phase = 0;
  g.phase_relaxed = false;
  g.phase_after_producer = false;
  map_shared_windows(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    enter_block(resident[i], first + i, static_cast<unsigned>(i));
    if (count > 1) make_shared_shadows(resident[i]);
    start_trace(resident[i]);
  }
  while (!g.stopping) {
    bool alive = false, progress = false;
    for (Block& block : resident) {
      if (block.alive == 0) continue;
      progress |= run_block(block);
      alive |= block.alive != 0;
      if (g.stopping) return;
    }
    if (!alive) break;
    if (!pass_wide_barrier() && !progress && !fail_tries(resident))
      return report_deadlock(stuck_block());
  }
  for (Block& block : resident) finish_trace(block);
  g.report->blocks += count;
}

// How many blocks are resident at once.
std::uint64_t blocks_together(const LaunchJob& launch) {
  const std::uint64_t blocks = volume(launch.grid), cluster = volume(launch.cluster);
  if (launch.cooperative) return blocks;
  if (!g.together || cluster != 1) return cluster;
  return std::min<std::uint64_t>(blocks, kMaxResidentThreads / g.threads_per_block);
}

void run_blocks(std::uint64_t first, std::uint64_t count) {
  const LaunchJob& launch = *g.launch;
  const Index3& grid = launch.grid;
  blockDim = {launch.block.x, launch.block.y, launch.block.z};
  gridDim = {grid.x, grid.y, grid.z};
  const std::uint64_t together = blocks_together(launch);
  fibers.resize(together * g.threads_per_block);
  std::vector<std::uint64_t> starts((count + together - 1) / together);
  for (std::uint64_t i = 0; i < starts.size(); ++i) starts[i] = first + i * together;
  // Blocks that wait for others wait for such as were started before.
  if (g.schedule_seed != 0 && !g.together) std::shuffle(starts.begin(), starts.end(), g.random);
  for (const std::uint64_t start : starts) {
    if (g.stopping) break;
    run_resident(start, std::min(together, first + count - start));
  }
  // Told last: a later block that writes what was read makes it a race.
  if (g.pending_uninitialized.kind != Fault::none) keep_fault(g.pending_uninitialized);
}

}  // namespace kopt_sim
