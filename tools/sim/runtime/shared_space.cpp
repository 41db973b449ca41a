// Addresses in the shared space, as PTX has them: small numbers, from the first variable on. Static
// variables lie together, dynamic shared memory lies apart; in the shared space it follows them.
#include <algorithm>
#include <cstring>

#include "../include/kopt_sim/runtime_interface.h"
#include "shared_space.h"
#include "state.h"

namespace kopt_sim {

namespace {

// What stands below the first variable on a GPU, and the unit to which all addresses keep their
// alignment: that of the widest pattern of a matrix in shared memory.
constexpr std::uintptr_t kUnit = 1024;
constexpr std::uintptr_t kGap = 4 * kUnit;  // between the two parts: an overrun meets nothing
constexpr unsigned kRankBits = 24;  // above these, which block of the cluster, plus 1
constexpr std::uintptr_t kNowhere = 64 << 20;  // so far behind shared memory lies nothing

struct Space {
  std::uintptr_t statics = 0, dynamic = 0;  // where the two parts begin, at a whole unit
  std::uintptr_t dynamic_place = kUnit;     // in the shared space; statics are at kUnit
};

Space make_space() {
  Space space;
  std::uintptr_t end = 0;
  for (const SharedVariable& variable : g.shared) {
    if (std::strcmp(variable.name, "dynamic_smem") == 0) {
      space.dynamic = variable.address;
      continue;
    }
    if (space.statics == 0 || variable.address < space.statics) space.statics = variable.address;
    end = std::max(end, variable.address + variable.bytes);
  }
  if (end == 0) return space;
  space.statics &= ~(kUnit - 1);
  space.dynamic_place += (end - space.statics + kGap + kUnit - 1) & ~(kUnit - 1);
  return space;
}

const Space& space() {
  static const Space made = make_space();
  return made;
}

}  // namespace

std::uintptr_t to_shared_space(std::uintptr_t address) {
  if (other_block_at(address) != nullptr) {
    const std::uintptr_t rank = kopt_sim_shared_rank(reinterpret_cast<const void*>(address));
    return to_shared_space(own_address_of(address)) | (rank + 1) << kRankBits;
  }
  const Space& here = space();
  const bool is_first = here.statics < here.dynamic;
  const bool is_static = is_first ? address < here.dynamic : address >= here.statics;
  if (here.statics == 0 || !is_static) return address - here.dynamic + here.dynamic_place;
  return address - here.statics + kUnit;
}

std::uintptr_t from_shared_space(std::uintptr_t place) {
  const std::uintptr_t rank = place >> kRankBits;
  if (rank != 0 && rank <= kopt_sim_cluster_size()) {
    const std::uintptr_t own = from_shared_space(place & ((std::uintptr_t{1} << kRankBits) - 1));
    if (find_shared(own) == nullptr) return own;
    return reinterpret_cast<std::uintptr_t>(kopt_sim_map_shared(
        reinterpret_cast<const void*>(own), static_cast<unsigned>(rank - 1), 0));
  }
  const Space& here = space();
  const auto offset = static_cast<std::int64_t>(place - here.dynamic_place);
  if (offset > static_cast<std::int64_t>(kSharedSpace)) return here.dynamic + kNowhere;
  if (offset >= 0 || here.statics == 0) return here.dynamic + static_cast<std::uintptr_t>(offset);
  return here.statics + place - kUnit;
}

}  // namespace kopt_sim

using namespace kopt_sim;

extern "C" {

std::size_t kopt_sim_to_shared(const void* pointer) {
  return to_shared_space(reinterpret_cast<std::uintptr_t>(pointer));
}

void* kopt_sim_from_shared(std::size_t place) {
  return reinterpret_cast<void*>(from_shared_space(place));
}
}
