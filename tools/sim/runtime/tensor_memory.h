// Tensor memory (tcgen05) of a block: 128 lanes of 512 columns of 32 bits, who has allocated and used
// which of them, and what is under way. Source of all rules: the PTX ISA, section 9.7.16.
#pragma once

#include <cstdint>
#include <vector>

#include "stamp.h"

namespace kopt_sim {

struct Block;
struct Fiber;
struct MatrixExchange;

constexpr unsigned kTensorLanes = 128, kTensorColumns = 512;

// How a cell is accessed: by tcgen05.ld and .st, which a warp waits for, or by what mbarriers tell of.
enum class TensorUse : std::uint8_t { load, store, read, write };

struct TensorCell {
  std::uint32_t word;
  std::uint16_t loading, storing;  // tcgen05.ld and .st under way
  bool read_later, written_later; // the last such access was no tcgen05.ld, no .st
  std::uint16_t reading, writing; // operations under way
  std::uint32_t reader, writer;   // a thread that reads so; the number of the last that writes
  Stamp read, written;            // 0: never
};

struct TensorRegion {
  unsigned lane, lanes, column, columns;
};

struct TensorAllocation {
  unsigned column, columns;
  int line;
};

// A tcgen05.mma from its start to the wait for the mbarrier of a later tcgen05.commit.
struct TensorOperation {
  std::uint32_t number;       // they are counted by block
  std::uint32_t issuer;       // thread
  std::uintptr_t pc;
  bool is_product, accumulates;
  std::uint64_t accumulator;  // and shape: those of one thread that are alike follow each other
  std::vector<TensorRegion> read, written;
  std::vector<std::uintptr_t> pieces;  // of shared memory, 16 bytes each
};

// What an mbarrier will be told of: the operations of a thread up to a number.
struct TensorCommit {
  Block* source;
  std::uint32_t issuer, operations;
  std::uintptr_t barrier, pc;
};

// What a warp has under way, and the epochs of its last fences, plus 1.
struct TensorWarp {
  std::vector<std::uint32_t> loads, stores;  // numbers of cells
  std::uint32_t fenced_before, fenced_after;
};

struct TensorMemory {
  std::vector<TensorCell> cells;  // none before the first allocation
  std::vector<TensorAllocation> allocations;
  unsigned last_columns = kTensorColumns;  // of the last allocation: later ones may not be larger
  bool relinquished = false;
  std::vector<TensorWarp> warps;
  std::vector<TensorOperation> under_way;
  std::uint32_t operations = 0;       // that were begun
  std::vector<TensorCommit> commits;  // to mbarriers of this block
};

inline std::uint32_t cell_number(unsigned lane, unsigned column) {
  return column * kTensorLanes + lane;
}

// tensor_cells.cpp. Checks an access of the running thread to every cell, and stamps it.
void use_cells(const TensorRegion& region, TensorUse use, std::uintptr_t pc,
               const TensorOperation* operation = nullptr);
TensorCell& cell_at(Block& block, unsigned lane, unsigned column);
TensorWarp& tensor_warp_of(const Fiber& fiber);
// Ends the run where columns that are given back are in use.
void require_unused(const TensorRegion& region, std::uintptr_t pc);

// tensor_allocation.cpp
void check_tensor_memory(Block& block);  // that ends

// tensor_steps.cpp. What the lanes of a warp have met at.
void do_tensor_step(unsigned code, MatrixExchange& exchange);
enum class TensorStep : unsigned { allocate, free, relinquish, move, wait_loads, wait_stores };

// tensor_allocation.cpp. The column, or kTensorColumns where there is no room yet.
bool has_room(unsigned columns);
unsigned allocate_columns(unsigned columns, int line, std::uintptr_t pc);
void free_columns(std::uint32_t address, unsigned columns, std::uintptr_t pc);

// tensor_operations.cpp. Ends what a commit tells of: it is waited for.
void end_operations(const TensorCommit& commit);

// tensor_moves.cpp
void move_cells(MatrixExchange& exchange);

}  // namespace kopt_sim
