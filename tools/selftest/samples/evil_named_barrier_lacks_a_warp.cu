/* kopt: 1
family: async_pipeline
note: "a count of all 256 threads, but one of the warps that load ends early"
where: "B <= 8 and H % 1024 == 0"
launch:
  - kernel: silu_and_mul_roles
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=barrier_divergence level=quick says="256 threads, of which"
// Barriers 1 and 2: a stage is filled; 3 and 4: it is read. Who hands on only arrives.

#include <cuda_bf16.h>

__device__ void wait_at(int number) {
  asm volatile("bar.sync %0, 256;" ::"r"(number) : "memory");  // <- here
}
__device__ void arrive_at(int number) {
  asm volatile("bar.arrive %0, 256;" ::"r"(number) : "memory");
}

extern "C" __global__ void __launch_bounds__(256)
    silu_and_mul_roles(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  __shared__ uint4 stages[2][2][128];
  const size_t row = blockIdx.x;
  const uint4* gates = reinterpret_cast<const uint4*>(input + row * 2 * H);
  const uint4* ups = gates + H / 8;
  const int t = threadIdx.x % 128, steps = H / 1024;

  if (threadIdx.x < 128) {
    if (t >= 96) return;
    for (int step = 0; step < steps; ++step) {
      if (step >= 2) wait_at(3 + step % 2);
      stages[step % 2][0][t] = gates[step * 128 + t];
      stages[step % 2][1][t] = ups[step * 128 + t];
      arrive_at(1 + step % 2);
    }
    return;
  }
  const int other = 127 - t;
  for (int step = 0; step < steps; ++step) {
    wait_at(1 + step % 2);
    const uint4 gate = stages[step % 2][0][other], up = stages[step % 2][1][other];
    if (step + 2 < steps) arrive_at(3 + step % 2);
    const auto* g = reinterpret_cast<const __nv_bfloat162*>(&gate);
    const auto* u = reinterpret_cast<const __nv_bfloat162*>(&up);
    uint4 packed;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = __bfloat1622float2(g[i]), y = __bfloat1622float2(u[i]);
      reinterpret_cast<__nv_bfloat162*>(&packed)[i] = __floats2bfloat162_rn(
          x.x / (1.0f + __expf(-x.x)) * y.x, x.y / (1.0f + __expf(-x.y)) * y.y);
    }
    reinterpret_cast<uint4*>(out + row * H)[step * 128 + other] = packed;
  }
}
