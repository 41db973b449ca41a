/* kopt: 1
family: reduction
note: "the classic tree in shared memory, a barrier a step"
where: "B <= 8"
launch:
  - kernel: norm_shared_tree
    grid: B
    block: 256
    smem: 1024
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block b owns row b; thread t the columns t, t + 256, ...

#include <cuda_bf16.h>

extern "C" __global__ void norm_shared_tree(__nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, int H, float eps) {
  extern __shared__ float partial[];
  __nv_bfloat16* x = input + size_t(blockIdx.x) * H;
  __nv_bfloat16* r = residual + size_t(blockIdx.x) * H;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    squares += h * h;
  }
  partial[threadIdx.x] = squares;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  const float rstd = rsqrtf(partial[0] / H + eps);
  for (int c = threadIdx.x; c < H; c += blockDim.x) {
    const float h = __bfloat162float(x[c]) + __bfloat162float(r[c]);
    r[c] = __float2bfloat16(h);
    x[c] = __float2bfloat16(h * rstd * __bfloat162float(weight[c]));
  }
}
