// The late producer: stands in for the kernel before a candidate that is launched programmatically.
// It lets its dependents start at once, does nothing for a while, and only then writes the inputs,
// whose buffers hold poison, or their elements in other places, until then. A kernel that reads one
// before griddepcontrol.wait reads that; the wait ends when this grid has ended and its writes are
// visible.
//
// Mapping: the threads of all blocks share the bytes of each copy, 16 at a time. The grid is far
// smaller than a device, so that the dependents find room beside it.

#include <kopt/griddepcontrol.cuh>

constexpr int MOST_COPIES = 128;

struct Copy {
  const unsigned char* source;
  unsigned char* target;
  unsigned long long bytes;
};

struct Copies {
  unsigned long long count;
  unsigned long long delay_cycles;
  Copy entries[MOST_COPIES];
};

extern "C" __global__ void __launch_bounds__(256)
    late_producer(const __grid_constant__ Copies copies) {
#if __CUDA_ARCH__ >= 900
  kopt::griddepcontrol_launch_dependents();
#endif
  const long long start = clock64();
  while (clock64() - start < static_cast<long long>(copies.delay_cycles)) {
  }
  const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (unsigned long long c = 0; c < copies.count; ++c) {
    const Copy& copy = copies.entries[c];
    const size_t vectors = copy.bytes / 16;  // buffers are 256-byte aligned
    for (size_t i = thread; i < vectors; i += threads) {
      reinterpret_cast<uint4*>(copy.target)[i] = reinterpret_cast<const uint4*>(copy.source)[i];
    }
    for (size_t i = vectors * 16 + thread; i < copy.bytes; i += threads) {
      copy.target[i] = copy.source[i];
    }
  }
}
