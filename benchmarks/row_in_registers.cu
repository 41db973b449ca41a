/* kopt: 1
family: [register_caching, pass_fusion]
note: "one row a block, held in registers; CHAIN adds dependent arithmetic, to plant a slowdown"
where: "H % 2048 == 0"
specialize: [H]
tune: {BLOCK: [256, 512, 128, 1024], VECTOR: [8, 4, 2], KEEP: [1, 0], MIN_BLOCKS: [1, 2, 4], CHAIN: [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32]}
tune_where: ["BLOCK * MIN_BLOCKS <= 2048"]
launch:
  - kernel: row_in_registers
    grid: B
    block: BLOCK
    pdl: true
    args: [input, residual, weight, eps, {int32: CHAIN}]
*/
// Mapping: block b owns row b, thread t the VECTOR columns from VECTOR t on, then the same again
// VECTOR BLOCK columns further. Shared memory: 32 floats, a partial sum per warp.
// CHAIN fused multiply-adds hang between the reduction and the stores, each on the one before: they
// lengthen every block by their latency and change no result. CHAIN is an argument and no macro: the
// binary is the same for all, for another one may differ by more than the slowdown.

#include <cuda_bf16.h>
#include <kopt/griddepcontrol.cuh>

constexpr int kSteps = (KOPT_H + BLOCK * VECTOR - 1) / (BLOCK * VECTOR);

// Words and not __nv_bfloat162, whose copy is its own function: only plain members are loaded at once.
struct alignas(VECTOR * 2) Vector {
  unsigned pairs[VECTOR / 2];
};

__device__ float2 unpack(unsigned pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

__device__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ float block_sum(float sum) {
  __shared__ float warp_sums[32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < BLOCK / 32; ++warp) total += warp_sums[warp];
  return total;
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS)
    row_in_registers(__nv_bfloat16* input, __nv_bfloat16* residual, const __nv_bfloat16* weight,
                     float eps, int chain) {
  const size_t row = static_cast<size_t>(blockIdx.x) * (KOPT_H / VECTOR);
  Vector* x = reinterpret_cast<Vector*>(input) + row;
  Vector* r = reinterpret_cast<Vector*>(residual) + row;
  const Vector* w = reinterpret_cast<const Vector*>(weight);
  kopt::griddepcontrol_wait();  // input and residual are what the kernel before writes
  kopt::griddepcontrol_launch_dependents();

  Vector added_x[kSteps], added_r[kSteps], scale[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int at = step * BLOCK + threadIdx.x;
    if (at < KOPT_H / VECTOR) {
      added_x[step] = x[at];
      added_r[step] = r[at];
      if (KEEP) scale[step] = w[at];
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    if (step * BLOCK + threadIdx.x < KOPT_H / VECTOR) {
#pragma unroll
      for (int i = 0; i < VECTOR / 2; ++i) {
        const float2 a = unpack(added_x[step].pairs[i]);
        const float2 b = unpack(added_r[step].pairs[i]);
        sum += (a.x + b.x) * (a.x + b.x) + (a.y + b.y) * (a.y + b.y);
      }
    }
  }
  const float rstd = rsqrtf(block_sum(sum) / KOPT_H + eps);
  float chained = rstd;
#pragma unroll 1
  for (int i = 0; i < chain; ++i) chained = fmaf(chained, 1.0001f, eps);
  if (chained < 0.0f) return;  // never: rstd and eps are positive, which the compiler cannot know

#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int at = step * BLOCK + threadIdx.x;
    if (at < KOPT_H / VECTOR) {
      const Vector weights = KEEP ? scale[step] : w[at];
      Vector sums, normed;
#pragma unroll
      for (int i = 0; i < VECTOR / 2; ++i) {
        const float2 a = unpack(added_x[step].pairs[i]);
        const float2 b = unpack(added_r[step].pairs[i]);
        const float2 h = make_float2(a.x + b.x, a.y + b.y);
        const float2 g = unpack(weights.pairs[i]);
        sums.pairs[i] = pack(h.x, h.y);
        normed.pairs[i] = pack(h.x * rstd * g.x, h.y * rstd * g.y);
      }
      r[at] = sums;
      x[at] = normed;
    }
  }
}
