// Addresses in the shared space (PTX) and the pointers that they stand for here.
#pragma once

#include <cstdint>

namespace kopt_sim {

constexpr std::uintptr_t kSharedSpace = 256 << 10;  // bytes that a matrix descriptor can name

std::uintptr_t to_shared_space(std::uintptr_t address);
std::uintptr_t from_shared_space(std::uintptr_t place);  // one that meets nothing, if there is none

}  // namespace kopt_sim
