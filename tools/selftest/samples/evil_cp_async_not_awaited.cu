/* kopt: 1
family: other
note: "shared memory is read while the asynchronous copy may be under way"
launch:
  - kernel: silu_and_mul
    grid: H // 2048, B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=uninitialized_read level=quick
// A barrier orders threads, not their asynchronous copies.

#include <cuda_bf16.h>
#include <kopt/cp_async.cuh>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  __shared__ uint4 gates[256];
  const size_t first = blockIdx.x * 2048 + threadIdx.x * 8;
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.y) * 2 * H + first;
  kopt::cp_async<16>(&gates[threadIdx.x], gate);
  kopt::cp_async_commit_group();
  __syncthreads();
  const uint4 mine = gates[threadIdx.x];  // <- here
  const auto* values = reinterpret_cast<const __nv_bfloat16*>(&mine);
  for (int i = 0; i < 8; ++i) {
    out[static_cast<size_t>(blockIdx.y) * H + first + i] = silu_mul(values[i], gate[H + i]);
  }
}
