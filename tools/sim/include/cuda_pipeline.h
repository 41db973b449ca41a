// cuda_pipeline.h for the simulator: batches of cp.async over the primitives.
#pragma once

#include <cuda_pipeline_primitives.h>

namespace nvcuda::experimental {

class pipeline {
 public:
  std::size_t commit() {
    __pipeline_commit();
    return batches_++;
  }
  void commit_and_wait() { wait(commit()); }
  void wait(std::size_t batch) { __pipeline_wait_prior(batches_ - batch - 1); }
  template <unsigned N>
  void wait_prior() { __pipeline_wait_prior(N); }

 private:
  std::size_t batches_ = 0;
};

template <class T>
inline void memcpy_async(T& shared, const T& global, pipeline&) {
  constexpr std::size_t kPart = sizeof(T) % 16 == 0 ? 16 : sizeof(T) % 8 == 0 ? 8 : 4;
  static_assert(sizeof(T) % 4 == 0, "the simulator copies multiples of 4 bytes");
  for (std::size_t at = 0; at < sizeof(T); at += kPart)
    __pipeline_memcpy_async(reinterpret_cast<char*>(&shared) + at,
                            reinterpret_cast<const char*>(&global) + at, kPart);
}

}  // namespace nvcuda::experimental
