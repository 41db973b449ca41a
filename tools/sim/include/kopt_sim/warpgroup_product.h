// One wgmma.mma_async as a thread hands it to the runtime: written by lowered PTX.
#pragma once

#include <cstdint>

namespace kopt_sim {

struct WarpgroupProduct {
  unsigned code;        // of A, B, the sums and k: mma_code (matrix_code.h)
  unsigned columns;     // N
  void* const* sums;    // where the registers of D lie
  std::uint64_t a, b;   // descriptors; `a` is none where A lies in registers
  unsigned __int128 a_registers;
  bool a_is_shared;
  bool accumulates;     // scale-d
  bool negates_a, negates_b;
  bool transposes_a, transposes_b;

  bool operator==(const WarpgroupProduct& other) const {
    return code == other.code && columns == other.columns && a == other.a && b == other.b &&
           a_is_shared == other.a_is_shared && accumulates == other.accumulates &&
           negates_a == other.negates_a && negates_b == other.negates_b &&
           transposes_a == other.transposes_a && transposes_b == other.transposes_b;
  }
};

}  // namespace kopt_sim
