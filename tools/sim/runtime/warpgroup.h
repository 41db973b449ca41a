// What the warpgroups of a block have under way: products (wgmma.mma_async) that nobody has waited for.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "../include/kopt_sim/warpgroup_product.h"
#include "shared_matrices.h"

namespace kopt_sim {

struct Block;
struct Fiber;

constexpr unsigned kWarpgroup = 128;  // threads

// Steps that all threads of a warpgroup meet at.
enum class WarpgroupStep : std::uint32_t { fence, product, commit, wait };

// Of one thread's registers, which are local variables here: by word of its stack.
struct RegisterMarks {
  static constexpr unsigned kWords = (128 << 10) / 4;
  std::bitset<kWords> accessed;   // since the last wgmma.fence
  std::bitset<kWords> in_flight;  // a product will write it
};

struct ProductInFlight {
  std::uint32_t group;
  std::uintptr_t pc;
  std::uint32_t poison;                 // what its sums hold until then
  std::vector<std::uintptr_t> pieces;   // of shared memory that it reads, 16 bytes each
  std::vector<std::uint32_t*> places;   // of its sums, thread by thread
  std::vector<std::uint32_t> sums;      // for these
};

struct Warpgroup {
  std::uint32_t groups = 0;  // that were committed
  std::vector<ProductInFlight> in_flight;
  const WarpgroupProduct* given[kWarpgroup];
  bool continues[kWarpgroup];  // the sums of a product under way
};

// warpgroups.cpp. Lets threads go on that wait for products, whose sums land then: as late as they
// may, when nothing else can run, or all that runs has only been waiting for a while. False: none wait.
bool land_products(Block& block, bool others_spin);

// warpgroup_operands.cpp
SharedMatrix warpgroup_matrix(std::uint64_t descriptor, std::uintptr_t pc);
// Checks the loads of all warps, where the product starts and where it is waited for.
void read_operands(const Fiber* first, const ProductInFlight& product, bool starts);

// warpgroup_sums.cpp. `before`: the registers of D, thread by thread.
void multiply(const Warpgroup& warpgroup, const std::vector<std::uint32_t>& before,
              ProductInFlight& product);
unsigned sum_registers(const WarpgroupProduct& product);
MatrixExtent extent_of_a(const WarpgroupProduct& product);
MatrixExtent extent_of_b(const WarpgroupProduct& product);

// registers.cpp
void note_register(std::uintptr_t address, std::size_t bytes, std::uintptr_t pc);
void fence_registers();
// Ends the run where a register of the sums was used behind the last fence. Returns whether a product
// under way writes them already.
bool check_registers(const WarpgroupProduct& product, std::uintptr_t pc);
void mark_in_flight(const Fiber& fiber, std::uint32_t* const* places, unsigned count, bool starts);

}  // namespace kopt_sim
