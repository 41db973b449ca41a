/* kopt: 1
family: vectorization
note: "a copy by 16-byte accesses, all loads of a thread in flight before its first store"
tune: {BLOCK: [256, 512, 1024], VECTORS: [1, 2, 4]}
launch:
  - kernel: device_copy
    grid: ceil_div(max(R, W), BLOCK * VECTORS)
    block: BLOCK
    pdl: true
    args: [x, y, {int32: R}, {int32: W}]
*/
// Mapping: block b owns BLOCK * VECTORS consecutive words of 16 bytes, thread t of it word t and
// every BLOCK-th one further, so that a warp's accesses are 512 bytes in a row.

#include <cuda_bf16.h>
#include <kopt/griddepcontrol.cuh>

extern "C" __global__ void __launch_bounds__(BLOCK)
    device_copy(const __nv_bfloat16* x, __nv_bfloat16* y, int read, int written) {
  const uint4* from = reinterpret_cast<const uint4*>(x);
  uint4* to = reinterpret_cast<uint4*>(y);
  const int first = blockIdx.x * BLOCK * VECTORS + threadIdx.x;
  kopt::griddepcontrol_wait();  // x is what the kernel before may have written
  kopt::griddepcontrol_launch_dependents();
  uint4 held[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const int at = first + i * BLOCK;
    held[i] = at < read ? from[at] : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const int at = first + i * BLOCK;
    if (at < written) to[at] = held[i];
  }
  if (first + (VECTORS - 1) * BLOCK < written) return;
  // What is read beyond the copy has to matter, or no compiler would load it.
  unsigned rest = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    if (first + i * BLOCK >= written) rest ^= held[i].x ^ held[i].y ^ held[i].z ^ held[i].w;
  }
  if (rest == 0x5eed5eedu) to[0] = from[0];
}
