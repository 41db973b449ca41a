/* kopt: 1
family: async_pipeline
note: "two tiles by cp.async, read by other threads than copied them"
where: "B <= 8 and H % 2048 == 0"
launch:
  - kernel: silu_and_mul_ring
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// The honest twin of evil_tile_refilled_too_early.

#include <cuda_bf16.h>
#include <kopt/cp_async.cuh>

extern "C" __global__ void __launch_bounds__(256)
    silu_and_mul_ring(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  __shared__ uint4 ring[2][2][256];
  const size_t row = blockIdx.x;
  const uint4* gates = reinterpret_cast<const uint4*>(input + row * 2 * H);
  const uint4* ups = gates + H / 8;
  const int steps = H / 2048;
  const auto start_loads = [&](int step) {
    if (step < steps) {
      const int at = step * 256 + threadIdx.x;
      kopt::cp_async<16>(&ring[step % 2][0][threadIdx.x], &gates[at]);
      kopt::cp_async<16>(&ring[step % 2][1][threadIdx.x], &ups[at]);
    }
    kopt::cp_async_commit_group();
  };

  start_loads(0);
  start_loads(1);
  const int other = 255 - threadIdx.x;
  for (int step = 0; step < steps; ++step) {
    kopt::cp_async_wait_group<1>();  // the group of this step is in
    __syncthreads();                 // and so is what other threads have copied
    const uint4 gate = ring[step % 2][0][other], up = ring[step % 2][1][other];
    __syncthreads();  // everyone has read the tile before it is filled again
    start_loads(step + 2);
    const auto* g = reinterpret_cast<const __nv_bfloat162*>(&gate);
    const auto* u = reinterpret_cast<const __nv_bfloat162*>(&up);
    uint4 packed;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = __bfloat1622float2(g[i]), y = __bfloat1622float2(u[i]);
      reinterpret_cast<__nv_bfloat162*>(&packed)[i] = __floats2bfloat162_rn(
          x.x / (1.0f + __expf(-x.x)) * y.x, x.y / (1.0f + __expf(-x.y)) * y.y);
    }
    reinterpret_cast<uint4*>(out + row * H)[step * 256 + other] = packed;
  }
}
