/* kopt: 1
family: async_pipeline
note: "cp.async into a ring of STAGES buffers: loads of later steps fly while one is computed"
where: "B <= 8 and H % 2048 == 0"
tune: {STAGES: [3, 2]}
launch:
  - kernel: silu_and_mul_cp_async
    grid: B
    block: 256
    smem: STAGES * 2 * 256 * 16
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block b owns row b in steps of 2,048 columns; thread t owns 8 columns of each step and
// reads only what it has copied itself, so its own wait is enough and there is no block barrier.
// Shared memory: ring[stage][gate or up][thread], 16 bytes each.

#include <cuda_bf16.h>
#include <kopt/cp_async.cuh>

extern __shared__ uint4 ring[];

__device__ uint4& slot(int step, int half) {
  return ring[(step % STAGES * 2 + half) * 256 + threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(256)
    silu_and_mul_cp_async(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const size_t row = blockIdx.x;
  const uint4* gates = reinterpret_cast<const uint4*>(input + row * 2 * H);
  const uint4* ups = gates + H / 8;
  uint4* results = reinterpret_cast<uint4*>(out + row * H);
  const int steps = H / 2048;
  const auto start_loads = [&](int step) {
    if (step < steps) {
      kopt::cp_async<16>(&slot(step, 0), &gates[step * 256 + threadIdx.x]);
      kopt::cp_async<16>(&slot(step, 1), &ups[step * 256 + threadIdx.x]);
    }
    kopt::cp_async_commit_group();  // an empty group too: the count of groups stays simple
  };

  for (int step = 0; step < STAGES - 1; ++step) start_loads(step);
  for (int step = 0; step < steps; ++step) {
    start_loads(step + STAGES - 1);
    kopt::cp_async_wait_group<STAGES - 1>();  // the group of this step is in
    const uint4 gate = slot(step, 0), up = slot(step, 1);
    const auto* g = reinterpret_cast<const __nv_bfloat162*>(&gate);
    const auto* u = reinterpret_cast<const __nv_bfloat162*>(&up);
    uint4 packed;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = __bfloat1622float2(g[i]), y = __bfloat1622float2(u[i]);
      reinterpret_cast<__nv_bfloat162*>(&packed)[i] = __floats2bfloat162_rn(
          x.x / (1.0f + __expf(-x.x)) * y.x, x.y / (1.0f + __expf(-x.y)) * y.y);
    }
    results[step * 256 + threadIdx.x] = packed;
  }
}
