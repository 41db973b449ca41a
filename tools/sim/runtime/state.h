// The state of one simulator process: buffers, shared variables, fibers, faults and counters.
// A process runs one block at a time (all blocks of a cooperative launch, or of a cluster).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "async_state.h"
#include "buffer_cells.h"
#include "buffer_counters.h"
#include "fault_record.h"
#include "fiber.h"
#include "matrix_exchange.h"
#include "named_barrier.h"
#include "tensor_memory.h"

namespace kopt_sim {

// Buffers lie 64 GiB apart in one reserved range, so that an address names its buffer and an
// access beyond its end, before its start, or far away meets unmapped memory.
// The range ends below where Linux puts executables (0x5555...).
constexpr std::uintptr_t kArena = 0x100000000000;
constexpr unsigned kSlotBits = 36;
constexpr std::uintptr_t kSlotLead = std::uintptr_t{1} << 32;
constexpr unsigned kMaxBuffers = 1024;
constexpr unsigned kMaxArguments = 64;
constexpr unsigned kMaxCpuBodies = 32;
constexpr unsigned kMaxRechecked = 32;
constexpr std::size_t kStackBytes = 128 << 10;
constexpr unsigned kMaxResidentThreads = 1 << 16;

enum class Role : std::uint8_t { in, out, inout, scratch };

struct Buffer {
  char name[64];
  std::uint8_t* base;
  std::uint64_t bytes;
  unsigned granule_shift;  // log2 of the bytes that one cell stands for
  Role role;
  bool initialized;  // holds values from the start: inputs, zeroed scratch
  bool is_static;    // no earlier kernel writes it
  BufferCells cells; // none for `in`
};

// What is known of one shared variable in one block.
struct SharedCells {
  std::vector<Cell> cells;
  unsigned granule_shift;
};

struct SharedVariable {
  char name[64];
  std::uintptr_t address;
  std::uint64_t bytes;
  SharedCells shadow;  // of the block that runs
};

// Bytes of a variable whose accesses are kept, so that a race can be told with both sides.
struct Watch {
  std::string variable;
  std::uint64_t offset, bytes;  // 0 bytes: nothing is watched
};

// Lies in memory shared with the parent process; plain data.
struct WorkerReport {
  FaultRecord fault;
  BufferCounters buffers[kMaxBuffers];
  std::uint64_t shared_load_bytes, shared_store_bytes;
  std::uint64_t barriers, blocks;
  std::uint64_t sampled_threads, sampled_accesses, sampled_load_phases;
  char cpu_bodies[kMaxCpuBodies][48];
  std::uint64_t rechecked[kMaxRechecked];  // see rechecks.cpp
  bool spins;  // a block waits for another one that has not started
  bool finished;
};

// What the lanes of a completed exchange gave, kept until each of them has read it.
struct ExchangeResult {
  std::uint64_t values[32];
  std::uint32_t unread;
};

struct Warp {
  std::uint64_t offered[32];
  std::vector<ExchangeResult> results;  // never more than 32: each holds an unread lane
  std::uint16_t seen[32][32];  // seen[a][b]: the lane epoch of b up to which a is ordered after it
  std::uint32_t alive;
  bool synced;  // a warp sync happened since the last block barrier
  std::vector<MatrixExchange> matrix;  // one, from its first matrix instruction on
};

struct Block {
  std::uint64_t index;  // within the launch
  Index3 position;
  Fiber* fibers;
  std::vector<Warp> warps;
  std::uint32_t epoch;
  std::uint32_t unordered_epochs;  // so many of the last ones no barrier of all threads has ended
  std::uint32_t alive;
  std::uint32_t at_barrier, at_cluster, at_grid;  // threads that wait there
  std::uint32_t arrived;  // threads that the cluster barrier under way need not wait for
  bool met_others;        // a cluster or grid barrier was passed: the other blocks have started
  bool was_reached;       // another block accessed its shared memory
  std::uint32_t votes, last_votes;
  std::vector<Warpgroup> warpgroups;             // none before the first wgmma
  std::vector<std::uint16_t> operand_readers;    // products under way that read 16 bytes of it
  std::uint32_t products_in_flight, rounds_of_spins;
  TensorMemory tensor;
  std::vector<NamedBarrier> named_barriers;  // 16, from the first use on
  // By warp and other warp: the first comes after what the other did in earlier epochs.
  std::vector<std::uint32_t> met;
  std::vector<SharedCells> shared_shadows;  // while another resident block runs
  std::unordered_map<std::uintptr_t, Mbarrier> mbarriers;
  std::vector<BulkLoad> bulk_loads;
  std::vector<LateArrival> late_arrivals;
  std::vector<SentValue> sent_values;  // to this block
  std::uint32_t proxy_epoch;           // the largest of its threads
  std::map<std::uintptr_t, Landed> landed;  // by bulk copies, by address
};

struct LaunchJob {
  std::string kernel;
  Index3 grid, block, cluster;
  std::uint64_t dynamic_smem_bytes;
  bool cooperative;
  bool dependent;  // may start before the launch before it has ended
  std::vector<std::uint64_t> values;  // one 8-byte slot per argument
  std::vector<bool> is_reference;     // the slot holds the address of the value: a tensor map
  void (*entry)(void**);
};

struct SyncedEpochs {
  std::uint32_t all;
  std::uint32_t ahead;  // of accesses made between arriving at a cluster barrier and its completion
};

struct State {
  Buffer buffers[kMaxBuffers];
  unsigned buffer_count;
  std::uint64_t plain_bytes[kMaxBuffers];  // of `in`: a load within them meets nobody
  std::vector<SharedVariable> shared;
  std::uintptr_t constant_begin, constant_end;  // read-only data of the candidate
  std::uintptr_t code_begin, code_last;  // first and last return address of an access hook
  std::uint8_t* has_run;                 // one byte an address from code_begin, for all processes

  std::vector<LaunchJob> launches;
  int launch_number;
  const LaunchJob* launch;
  std::uint64_t threads_per_block;
  std::uint64_t first_stamp_block;  // stamps of smaller block numbers are of earlier launches
  std::uint64_t stamp_block_base;

  Block* block;
  Fiber* fiber;
  Stamp stamp;  // of the running thread, up to date at any access
  std::uintptr_t stack_begin;
  void* scheduler_stack_pointer;
  bool stopping;

  std::uint32_t phase;  // cluster barriers that the resident blocks have passed
  bool phase_relaxed;   // some arrival at the one under way orders nothing
  // Accesses of resident blocks in earlier epochs come before those of threads that know of this
  // phase [0], of the one before only [1].
  SyncedEpochs synced[2];
  bool phase_after_producer;  // some thread that met the others there had waited for the launch before
  std::vector<Block> resident;
  std::uint64_t resident_first;  // stamp block number
  std::uint8_t poison;
  std::size_t poisoned_stack_bytes;  // of each thread, when it starts
  // What a second run does otherwise (tools/sim/second_look.py).
  int filler;      // of shared memory that nothing has written: loads find it; -1: loads are faults
  bool together;   // all blocks of a plain launch are resident, as far as there is room
  bool learns;     // notes loads that atomic operations check again; races are no faults
  std::vector<std::uintptr_t> rechecked;  // return addresses of such loads, ascending
  Watch watch;
  bool single_process;
  unsigned schedule_seed;
  std::mt19937 random;
  std::uint32_t accesses_until_switch;
  std::uintptr_t last_pc;

  FaultRecord pending_uninitialized;
  FaultRecord pending_write_race;  // until the store shows whether it changed anything
  std::uintptr_t pending_write_address;
  std::uint8_t pending_write_bytes[16];
  WorkerReport* report;
};

extern State g;

inline bool is_local(std::uintptr_t address) { return address - g.stack_begin < kStackBytes; }

inline bool is_second_look() {
  return g.learns || !g.rechecked.empty() || g.watch.bytes != 0;
}

inline Warp& warp_of(const Fiber& fiber) { return g.block->warps[fiber.linear / 32]; }

// Recomputes g.stamp after the running thread, its epoch or its lane epoch changed.
void refresh_stamp();

// fibers.cpp
void prepare_fiber(Fiber& fiber, unsigned stack_number);
void allocate_stacks(unsigned count);
void switch_to(Fiber& fiber);
std::uintptr_t stack_of(const Fiber& fiber);
void return_to_scheduler();

// faults.cpp
FaultRecord describe_fault(Fault kind, std::uintptr_t pc);
void keep_fault(const FaultRecord& record);        // goes on; the gravest is kept
[[noreturn]] void stop_with(const FaultRecord& record);  // the running thread never resumes
void settle_pending_write();
void install_signal_handlers(unsigned timeout_ms);

// rechecks.cpp
void note_load(std::uintptr_t address, unsigned bytes, std::uintptr_t pc);
void forget_loads();
bool is_rechecked(std::uintptr_t pc);

// spins.cpp
void count_spin(std::uintptr_t address, std::uintptr_t pc);

// scheduler.cpp
std::uint64_t blocks_together(const LaunchJob& launch);
void run_blocks(std::uint64_t first, std::uint64_t count);

// synchronization.cpp
void release_if_complete(const Fiber& waiting);

// block_barriers.cpp
void report_deadlock(Block& block);

// wide_barriers.cpp
bool pass_wide_barrier();
void forget_arrival(Block& block, const Fiber& fiber);

// shared_memory.cpp
void map_shared_windows(std::uint64_t count);
void make_shared_shadows(Block& block);
void place_shared(Block& block);
void check_end(Block& block);
const SharedVariable* find_shared(std::uintptr_t address);  // of this block; null for none
bool is_shared(std::uintptr_t address);
// Of an address as `owner` has it; null for none.
std::pair<Cell*, Cell*> cells_of(Block& owner, std::uintptr_t address, unsigned bytes);
Block* other_block_at(std::uintptr_t address);  // null for an address of this block
std::uintptr_t own_address_of(std::uintptr_t address);
// Ends the run if this block of the cluster need not be there; `address` as it has it.
void require_reachable(Block& other, std::uintptr_t address, unsigned bytes, std::uintptr_t pc);
std::uintptr_t address_among_blocks(std::uintptr_t address);

// async_copies.cpp
void start_bulk_load(const AsyncCopy& copy, std::uintptr_t barrier);
void start_bulk_store(const AsyncCopy& copy);
void land_copies(const CopyGroup& group);

// mbarriers.cpp
void check_awaited(Block& block);

// trace.cpp
void trace_access(std::uintptr_t pc, std::uintptr_t address, unsigned bytes, bool is_store);
void start_trace(Block& block);
void finish_trace(Block& block);

// access_hooks.cpp
bool is_candidate_memory(std::uintptr_t address);
std::uint32_t draw_turn();
void check_load(const volatile void* p, unsigned bytes, std::uintptr_t pc);
void check_store(const volatile void* p, unsigned bytes, std::uintptr_t pc);
void check_atomic(std::uintptr_t address, unsigned bytes, bool reads, std::uintptr_t pc);
void check_alignment(const volatile void* p, unsigned bytes, bool is_store, std::uintptr_t pc);
void check_start(const volatile void* p, unsigned bytes, bool is_store, std::uintptr_t pc);
void copy_checked(const AsyncCopy& copy);

}  // namespace kopt_sim
