// cooperative_groups::inclusive_scan and exclusive_scan for the simulator, over lanes of a warp.
#pragma once

#include <cooperative_groups/reduce.h>

namespace cooperative_groups {

namespace details {
// The combination of the ranks before the caller's, its own too where `Inclusive`.
template <bool Inclusive, class Group, class T, class Combine>
inline T scan(const Group& group, T value, Combine combine, int line) {
  std::uint64_t values[32];
  const unsigned lanes =
      kopt_sim_exchange(kopt_sim::kReduce, group.lanes(), kopt_sim::to_bits(value), line, values);
  T result{};
  bool first = true;
  for (unsigned lane = 0; lane < kopt_sim_lane() + (Inclusive ? 1u : 0u); ++lane) {
    if (!(lanes >> lane & 1u)) continue;
    const T other = kopt_sim::from_bits<T>(values[lane]);
    result = first ? other : combine(result, other);
    first = false;
  }
  return result;
}
}  // namespace details

template <class Group, class T, class Combine = plus<T>>
inline T inclusive_scan(const Group& group, T value, Combine combine = {}, KOPT_SIM_LINE) {
  return details::scan<true>(group, value, combine, line);
}
template <class Group, class T, class Combine = plus<T>>
inline T exclusive_scan(const Group& group, T value, Combine combine = {}, KOPT_SIM_LINE) {
  return details::scan<false>(group, value, combine, line);
}

}  // namespace cooperative_groups
