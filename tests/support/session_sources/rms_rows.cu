/* kopt: 1
family: vectorization
note: "a block for each row, 16-byte loads, the row stays in registers"
where: "C % 8 == 0 and C <= 16384"
tune: {BLOCK: [256, 32, 64, 128, 512]}
launch:
  - {kernel: rms_rows, grid: B, block: BLOCK, args: [x, weight, out, C]}
*/
#include <cuda_bf16.h>

constexpr int kPacks = 16384 / 8 / BLOCK;  // of a thread, at most

extern "C" __global__ void rms_rows(const __nv_bfloat16* __restrict__ x,
                                    const __nv_bfloat16* __restrict__ weight,
                                    __nv_bfloat16* __restrict__ out, int C) {
  __shared__ float partial[BLOCK / 32];
  const uint4* row = reinterpret_cast<const uint4*>(x) + blockIdx.x * (C / 8);
  uint4 packs[kPacks];
  float sum = 0.0f;
#pragma unroll
  for (int n = 0; n < kPacks; ++n) {
    const int place = n * BLOCK + threadIdx.x;
    if (place >= C / 8) break;
    packs[n] = row[place];
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&packs[n]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = __bfloat1622float2(pairs[i]);
      sum += pair.x * pair.x + pair.y * pair.y;
    }
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < BLOCK / 32; ++warp) total += partial[warp];
  const float scale = rsqrtf(total / C + 1e-6f);
  const uint4* weights = reinterpret_cast<const uint4*>(weight);
  uint4* to = reinterpret_cast<uint4*>(out) + blockIdx.x * (C / 8);
#pragma unroll
  for (int n = 0; n < kPacks; ++n) {
    const int place = n * BLOCK + threadIdx.x;
    if (place >= C / 8) break;
    const uint4 factors = weights[place];
    uint4 made;
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&packs[n]);
    const __nv_bfloat162* by = reinterpret_cast<const __nv_bfloat162*>(&factors);
    __nv_bfloat162* result = reinterpret_cast<__nv_bfloat162*>(&made);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = __bfloat1622float2(pairs[i]);
      result[i] = __hmul2(__floats2bfloat162_rn(pair.x * scale, pair.y * scale), by[i]);
    }
    to[place] = made;
  }
}
