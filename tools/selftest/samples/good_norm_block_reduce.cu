/* kopt: 1
family: reduction
note: "warp sums in shared memory, summed again by the first warp, then broadcast"
where: "B <= 8"
launch:
  - kernel: norm_block_reduce
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 256, ...

#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

template <int kWarps>
__device__ float block_sum(float v) {
  __shared__ float sums[kWarps];
  __shared__ float total;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_sum(v);
  if (lane == 0) sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = warp_sum(lane < kWarps ? sums[lane] : 0.0f);
    if (lane == 0) total = v;
  }
  __syncthreads();
  return total;
}

extern "C" __global__ void norm_block_reduce(__nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, int H, float eps) {
  __nv_bfloat16* x = input + size_t(blockIdx.x) * H;
  __nv_bfloat16* r = residual + size_t(blockIdx.x) * H;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    squares += h * h;
  }
  const float rstd = rsqrtf(block_sum<8>(squares) / H + eps);
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
