// cooperative_groups::memcpy_async for the simulator: each call is a batch of asynchronous copies.
#pragma once

#include <cooperative_groups.h>

namespace cooperative_groups {

namespace details {
inline bool is_aligned(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}
inline void copy_piece(char* shared, const char* global, unsigned bytes) {
  const unsigned width = bytes == 16 && is_aligned(shared, 16) && is_aligned(global, 16) ? 16
                         : bytes % 4 == 0 && is_aligned(shared, 4) && is_aligned(global, 4) ? 4
                                                                                            : 0;
  if (width == 0) {
    for (unsigned at = 0; at < bytes; ++at) shared[at] = global[at];
    return;
  }
  for (unsigned at = 0; at < bytes; at += width)
    kopt_sim_async_copy(shared + at, global + at, width, width);
}
}  // namespace details

// Source and destination lie in global and shared memory; what is too odd for cp.async is copied.
template <class Group, class T, class Source>
inline void memcpy_async(const Group& group, T* shared, const Source* global, std::size_t bytes) {
  auto* to = reinterpret_cast<char*>(shared);
  const auto* from = reinterpret_cast<const char*>(global);
  for (std::size_t at = group.thread_rank() * std::size_t(16); at < bytes;
       at += group.size() * std::size_t(16))
    details::copy_piece(to + at, from + at, bytes - at < 16 ? unsigned(bytes - at) : 16u);
  kopt_sim_async_commit();
}
template <class Group, class T>
inline void memcpy_async(const Group& group, T* shared, std::size_t room, const T* global,
                         std::size_t count) {
  memcpy_async(group, shared, global, sizeof(T) * (room < count ? room : count));
}
template <unsigned Pending, class Group>
inline void wait_prior(const Group& group, KOPT_SIM_LINE) {
  kopt_sim_async_wait(Pending);
  group.sync(line);
}
template <class Group>
inline void wait(const Group& group, KOPT_SIM_LINE) {
  wait_prior<0>(group, line);
}

}  // namespace cooperative_groups
