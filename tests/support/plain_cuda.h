// Runs kernels on the CPU one thread after another, without any check: the values only.
// A block whose kernel has a barrier runs its threads as coroutines (ucontext), switched there.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <limits>
#include <type_traits>
#include <vector>

#undef __shared__
#undef __launch_bounds__
#define __shared__ static
#define __launch_bounds__(...)
#define __syncthreads plain_cuda::barrier
#define __uint_as_float std::bit_cast<float>
#define __float_as_uint std::bit_cast<unsigned>
#define __shfl_xor_sync(mask, value, distance) plain_cuda::shfl_xor(mask, value, distance)

#include "nvfp4_utils.cuh"

namespace plain_cuda {

struct Place {
  unsigned x, y, z;
};
inline Place thread, block, block_size, grid_size;

constexpr int STACK_BYTES = 64 << 10;
inline ucontext_t fibers[1024];
inline bool is_done[1024];
inline int running;
inline void (*entry)(void**);
inline void** values;

// What a thread goes on with: swapcontext asks the kernel for a signal mask at every switch.
inline jmp_buf resumed[1024], host_resumed;

inline void others_turn() {
  if (!_setjmp(resumed[running])) _longjmp(host_resumed, 1);
}

// The fewest barriers that a thread which is not done has reached, and how many have no more.
inline int fewest, with_fewest;
inline int threads_of_block, barriers[1024];

inline void find_fewest() {
  fewest = std::numeric_limits<int>::max();
  for (int t = 0; t < threads_of_block; ++t) {
    if (is_done[t] || barriers[t] > fewest) continue;
    if (barriers[t] < fewest) with_fewest = 0;
    fewest = barriers[t];
    ++with_fewest;
  }
}

inline void barrier() {
  const int own = ++barriers[running];
  if (own == fewest + 1 && --with_fewest == 0) find_fewest();
  while (fewest < own) others_turn();
}

struct Shuffle {
  unsigned mask;
  unsigned given[2];
  int count;
};
inline std::vector<Shuffle> shuffles[1024];  // of each thread, by mask

inline Shuffle& shuffle_of(int t, unsigned mask) {
  for (Shuffle& one : shuffles[t]) {
    if (one.mask == mask) return one;
  }
  return shuffles[t].emplace_back(Shuffle{mask, {0, 0}, 0});
}

// The lanes of the mask take part; others may be elsewhere. Each has read a value before any gives
// the next but one.
inline unsigned shfl_xor(unsigned mask, unsigned value, int distance) {
  const int t = running, count = ++shuffle_of(t, mask).count;
  shuffle_of(t, mask).given[count % 2] = value;
  for (int lane = 0; lane < 32; ++lane) {
    const int other = t / 32 * 32 + lane;
    if (!(mask >> lane & 1) || other >= threads_of_block) continue;
    while (!is_done[other] && shuffle_of(other, mask).count < count) others_turn();
  }
  return shuffle_of(distance < 32 ? t ^ distance : t, mask).given[count % 2];
}

inline void fiber_main() {
  entry(values);
  is_done[running] = true;
  if (barriers[running] == fewest && --with_fewest == 0) find_fewest();
  _longjmp(host_resumed, 1);
}

// A thread's first turn starts it on its own stack, later ones go on where it waits.
inline void give_turn(int t, bool is_first) {
  running = t;
  thread.x = t;
  if (_setjmp(host_resumed)) return;
  if (!is_first) _longjmp(resumed[t], 1);
  setcontext(&fibers[t]);
}

inline void run_with_barriers(int threads) {
  threads_of_block = threads;
  static std::vector<char> stacks(size_t(1024) * STACK_BYTES);
  for (int t = 0; t < threads; ++t) {
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = stacks.data() + size_t(t) * STACK_BYTES;
    fibers[t].uc_stack.ss_size = STACK_BYTES;
    fibers[t].uc_link = nullptr;
    makecontext(&fibers[t], fiber_main, 0);
    is_done[t] = false;
    barriers[t] = 0;
    shuffles[t].clear();
  }
  find_fewest();
  bool is_first = true;
  for (bool is_any = true; is_any; is_first = false) {
    is_any = false;
    for (int t = 0; t < threads; ++t) {
      if (is_done[t]) continue;
      give_turn(t, is_first);
      is_any = true;
    }
  }
}

inline void launch(void (*kernel)(void**), void** given, unsigned blocks, unsigned threads,
                   bool has_barriers) {
  entry = kernel;
  values = given;
  grid_size = {blocks, 1, 1};
  block_size = {threads, 1, 1};
  for (unsigned b = 0; b < blocks; ++b) {
    block = {b, 0, 0};
    if (has_barriers) {
      run_with_barriers(int(threads));
      continue;
    }
    for (unsigned t = 0; t < threads; ++t) {
      thread = {t, 0, 0};
      kernel(given);
    }
  }
}

}  // namespace plain_cuda

#define threadIdx plain_cuda::thread
#define blockIdx plain_cuda::block
#define blockDim plain_cuda::block_size
#define gridDim plain_cuda::grid_size
