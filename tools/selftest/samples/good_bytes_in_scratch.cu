/* kopt: 1
family: other
note: "each thread has a byte in scratch that is read as words"
scratch: {flags: {dtype: int32, shape: "B, 64"}}
launch:
  - kernel: fused_add_rmsnorm
    grid: B
    block: 256
    args: [input, residual, weight, flags, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Four threads store to one word, each to a byte of its own.

#include <cuda_bf16.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm(__nv_bfloat16* input, __nv_bfloat16* residual,
                                             const __nv_bfloat16* weight, int* flags, int H,
                                             float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sum += h * h;
  }
  partial[threadIdx.x] = sum;
  signed char* used = reinterpret_cast<signed char*>(flags + blockIdx.x * 64);
  used[threadIdx.x] = 1;
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < 256; ++i) total += partial[i];
  const int four = flags[blockIdx.x * 64 + threadIdx.x / 4];
  const float rstd = rsqrtf(total / H + eps);
  __syncthreads();
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    const float y = h * rstd * __bfloat162float(weight[column]);
    input[row + column] = __float2bfloat16(four != 0 ? y : 0.0f);
  }
}
