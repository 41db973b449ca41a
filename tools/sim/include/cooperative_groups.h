// cooperative_groups for the simulator: the groups and operations that kernels of this field use.
// CUDA's own header is PTX throughout. What is missing here (tiles of more than 32 threads, the
// split barrier of a block) does not compile and is reported with its line.
#pragma once

#include <kopt_sim/device.h>

namespace cooperative_groups {

namespace details {
inline unsigned block_rank() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
}  // namespace details

class thread_block {
 public:
  using arrival_token = int;
  static void sync(KOPT_SIM_LINE) { kopt_sim_barrier(0, line); }
  static unsigned thread_rank() { return details::block_rank(); }
  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return details::block_size(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static dim3 group_dim() { return dim_threads(); }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static void sync(KOPT_SIM_LINE) { kopt_sim_grid_barrier(line); }
  static bool is_valid() { return true; }
  static unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
           blockIdx.x;
  }
  static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static unsigned long long thread_rank() {
    return block_rank() * details::block_size() + details::block_rank();
  }
  static unsigned long long size() { return num_blocks() * details::block_size(); }
  static unsigned long long num_threads() { return size(); }
  static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
};
inline grid_group this_grid() { return {}; }

class cluster_group {
 public:
  struct arrival_token {};
  static void sync(KOPT_SIM_LINE) { kopt_sim_cluster_barrier(line); }
  static arrival_token barrier_arrive(KOPT_SIM_LINE) {
    kopt_sim_cluster_arrive(line);
    return {};
  }
  static void barrier_wait(KOPT_SIM_LINE) { kopt_sim_cluster_wait(line); }
  static void barrier_wait(arrival_token&&, KOPT_SIM_LINE) { kopt_sim_cluster_wait(line); }
  template <class T>
  static T* map_shared_rank(T* address, int rank, KOPT_SIM_LINE) {
    return static_cast<T*>(kopt_sim_map_shared(address, static_cast<unsigned>(rank), line));
  }
  static unsigned query_shared_rank(const void* address) { return kopt_sim_shared_rank(address); }
  static unsigned block_rank() { return kopt_sim_cluster_rank(); }
  static unsigned num_blocks() { return kopt_sim_cluster_size(); }
  static dim3 block_index() { return dim3(kopt_sim_cluster_rank()); }
  static dim3 dim_blocks() { return dim3(kopt_sim_cluster_size()); }
  static unsigned thread_rank() {
    return block_rank() * details::block_size() + details::block_rank();
  }
  static dim3 thread_index() {
    return dim3(block_rank() * blockDim.x + threadIdx.x, threadIdx.y, threadIdx.z);
  }
  static dim3 dim_threads() { return dim3(num_blocks() * blockDim.x, blockDim.y, blockDim.z); }
  static unsigned num_threads() { return num_blocks() * details::block_size(); }
  static unsigned size() { return num_threads(); }
};
inline cluster_group this_cluster() { return {}; }

// Lanes of one warp; `mask` is theirs.
class lane_group {
 public:
  explicit lane_group(unsigned mask) : mask_(mask) {}
  void sync(KOPT_SIM_LINE) const { kopt_sim_sync_warp(mask_, line); }
  unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & ((1u << kopt_sim_lane()) - 1u)));
  }
  template <class T>
  T shfl(T value, unsigned rank, KOPT_SIM_LINE) const {
    return kopt_sim::shuffle(mask_, value, lane_of(rank % size()), line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, KOPT_SIM_LINE) const {
    const unsigned rank = thread_rank();
    const unsigned source = rank + delta < size() ? rank + delta : rank;
    return kopt_sim::shuffle(mask_, value, lane_of(source), line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, KOPT_SIM_LINE) const {
    const unsigned rank = thread_rank();
    const unsigned source = rank >= delta ? rank - delta : rank;
    return kopt_sim::shuffle(mask_, value, lane_of(source), line);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, KOPT_SIM_LINE) const {
    const unsigned source = thread_rank() ^ bits;
    return kopt_sim::shuffle(mask_, value, lane_of(source < size() ? source : thread_rank()),
                             line);
  }
  int any(int predicate, KOPT_SIM_LINE) const { return __any_sync(mask_, predicate, line); }
  int all(int predicate, KOPT_SIM_LINE) const { return __all_sync(mask_, predicate, line); }
  // Bit r of the answer is the vote of rank r.
  unsigned ballot(int predicate, KOPT_SIM_LINE) const {
    return ranked(__ballot_sync(mask_, predicate, line));
  }
  unsigned lanes() const { return mask_; }
  // Bit r: whether rank r has the caller's value; all ranks, or none unless they agree.
  template <class T>
  unsigned match_any(T value, KOPT_SIM_LINE) const {
    return ranked(__match_any_sync(mask_, value, line));
  }
  template <class T>
  unsigned match_all(T value, int& same, KOPT_SIM_LINE) const {
    return ranked(__match_all_sync(mask_, value, &same, line));
  }

 private:
  unsigned ranked(unsigned lanes) const {
    unsigned ranks = 0;
    for (unsigned rank = 0; rank < size(); ++rank) ranks |= (lanes >> lane_of(rank) & 1u) << rank;
    return ranks;
  }
  unsigned lane_of(unsigned rank) const {
    unsigned rest = mask_;
    for (; rank > 0; --rank) rest &= rest - 1u;
    return static_cast<unsigned>(__ffs(static_cast<int>(rest)) - 1);
  }
  unsigned mask_;
};

namespace details {
// Which part of its parent a tile is, and of how many: the parent is the block or a larger tile.
template <class Parent>
struct tile_parent {
  static unsigned rank() { return block_rank(); }
  static unsigned size() { return block_size(); }
};
}  // namespace details

template <unsigned Size, class Parent = void>
class thread_block_tile : public lane_group {
 public:
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "the simulator has tiles of 1 to 32 threads, powers of two");
  thread_block_tile() : lane_group(first_mask() << (kopt_sim_lane() / Size * Size)) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>& tile)
      : lane_group(tile), parent_rank_(tile.parent_rank_), parent_size_(tile.parent_size_) {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return kopt_sim_lane() % Size; }
  unsigned meta_group_rank() const { return parent_rank_ / Size; }
  unsigned meta_group_size() const { return (parent_size_ + Size - 1) / Size; }

 private:
  template <unsigned, class>
  friend class thread_block_tile;
  unsigned parent_rank_ = details::tile_parent<Parent>::rank();
  unsigned parent_size_ = details::tile_parent<Parent>::size();
  static constexpr unsigned first_mask() {
    return Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1u;
  }
};

namespace details {
template <unsigned Size, class Parent>
struct tile_parent<thread_block_tile<Size, Parent>> {
  static unsigned rank() { return kopt_sim_lane() % Size; }
  static unsigned size() { return Size; }
};
}  // namespace details

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

class coalesced_group : public lane_group {
 public:
  using lane_group::lane_group;
};
inline coalesced_group coalesced_threads(KOPT_SIM_LINE) {
  return coalesced_group(kopt_sim_active_mask(line));
}

// The lanes of a group that have the caller's label.
template <class Group, class Label>
inline coalesced_group labeled_partition(const Group& group, Label label, KOPT_SIM_LINE) {
  return coalesced_group(__match_any_sync(group.lanes(), label, line));
}
template <class Group>
inline coalesced_group binary_partition(const Group& group, bool side, KOPT_SIM_LINE) {
  return labeled_partition(group, static_cast<int>(side), line);
}

// A group whose kind is known when it runs only: the block, a part of a warp, or one thread.
class thread_group {
 public:
  thread_group(const thread_block&) : mask_(0) {}
  thread_group(const lane_group& lanes) : mask_(lanes.lanes()) {}
  void sync(KOPT_SIM_LINE) const {
    if (mask_ == 0) {
      kopt_sim_barrier(0, line);
    } else {
      kopt_sim_sync_warp(mask_, line);
    }
  }
  unsigned size() const { return mask_ == 0 ? details::block_size() : lane_group(mask_).size(); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return mask_ == 0 ? details::block_rank() : lane_group(mask_).thread_rank();
  }

 private:
  unsigned mask_;
};
inline lane_group this_thread() { return lane_group(1u << kopt_sim_lane()); }
template <class Parent>
inline thread_group tiled_partition(const Parent&, unsigned size) {
  const unsigned first = size >= 32 ? 0xffffffffu : (1u << size) - 1u;
  return lane_group(first << (kopt_sim_lane() / size * size));
}

template <class Group>
inline void sync(const Group& group, KOPT_SIM_LINE) {
  group.sync(line);
}
template <class Group>
inline auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group>
inline auto group_size(const Group& group) { return group.size(); }
// Which thread calls is not specified.
template <class Group, class Function, class... Arguments>
inline void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == group.size() - 1)
    std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}

}  // namespace cooperative_groups
