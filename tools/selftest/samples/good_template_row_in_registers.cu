/* kopt: 1
family: register_caching
note: "a block per row, each global byte read once: h waits in registers across the barrier"
where: "B <= 128 and H <= 4096"
specialize: [H]
tune: {BLOCK: [256, 512]}
tune_where: ["BLOCK * 8 <= H"]
launch:
  - kernel: fused_add_rmsnorm_registers
    grid: B
    block: BLOCK
    args: [input, residual, weight, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t owns the 8 columns from 8 t, 8 (t + THREADS), ... on.
// Shared memory: one partial sum per warp (4 * THREADS / 32 bytes).

#include <cuda_bf16.h>

struct alignas(16) Vector {
  __nv_bfloat162 pairs[4];
};

// Every thread gets the sum of all.
template <int THREADS>
__device__ float block_sum(float value) {
  __shared__ float warp_sums[THREADS / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < THREADS / 32; ++warp) total += warp_sums[warp];
  return total;
}

template <int H, int THREADS>
__device__ void add_rmsnorm_row(Vector* x, Vector* r, const Vector* w, float eps) {
  constexpr int STEPS = H / (8 * THREADS);
  static_assert(STEPS * 8 * THREADS == H, "threads must divide the row into whole vectors");
  float h[STEPS][8];
  float sum_of_squares = 0.0f;
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const int at = step * THREADS + threadIdx.x;
    const Vector a = x[at];
    const Vector b = r[at];
    Vector rounded;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 first = __bfloat1622float2(a.pairs[i]);
      const float2 second = __bfloat1622float2(b.pairs[i]);
      h[step][2 * i] = first.x + second.x;
      h[step][2 * i + 1] = first.y + second.y;
      sum_of_squares += h[step][2 * i] * h[step][2 * i];
      sum_of_squares += h[step][2 * i + 1] * h[step][2 * i + 1];
      rounded.pairs[i] = __floats2bfloat162_rn(h[step][2 * i], h[step][2 * i + 1]);
    }
    r[at] = rounded;
  }
  const float rstd = rsqrtf(block_sum<THREADS>(sum_of_squares) / H + eps);
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const int at = step * THREADS + threadIdx.x;
    const Vector scale = w[at];
    Vector normed;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 s = __bfloat1622float2(scale.pairs[i]);
      normed.pairs[i] =
          __floats2bfloat162_rn(h[step][2 * i] * rstd * s.x, h[step][2 * i + 1] * rstd * s.y);
    }
    x[at] = normed;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    fused_add_rmsnorm_registers(__nv_bfloat16* input, __nv_bfloat16* residual,
                                const __nv_bfloat16* weight, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * (KOPT_H / 8);
  add_rmsnorm_row<KOPT_H, BLOCK>(reinterpret_cast<Vector*>(input) + row,
                                 reinterpret_cast<Vector*>(residual) + row,
                                 reinterpret_cast<const Vector*>(weight), eps);
}
