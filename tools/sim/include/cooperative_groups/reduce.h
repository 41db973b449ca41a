// cooperative_groups::reduce for the simulator, over tiles and coalesced groups.
#pragma once

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class T = void>
struct plus {
  template <class U>
  U operator()(U a, U b) const { return kopt_sim::wrapping_sum(a, b); }
};
template <class T = void>
struct less {
  template <class U>
  U operator()(U a, U b) const { return b < a ? b : a; }
};
template <class T = void>
struct greater {
  template <class U>
  U operator()(U a, U b) const { return a < b ? b : a; }
};
template <class T = void>
struct bit_and {
  template <class U>
  U operator()(U a, U b) const { return a & b; }
};
template <class T = void>
struct bit_or {
  template <class U>
  U operator()(U a, U b) const { return a | b; }
};
template <class T = void>
struct bit_xor {
  template <class U>
  U operator()(U a, U b) const { return a ^ b; }
};

template <class Group, class T, class Combine>
inline T reduce(const Group& group, T value, Combine combine, KOPT_SIM_LINE) {
  return kopt_sim::reduce(group.lanes(), value, combine, line);
}

}  // namespace cooperative_groups
