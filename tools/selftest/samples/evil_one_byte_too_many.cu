/* kopt: 1
family: other
note: "one code behind the last one"
where: "B <= 8"
launch:
  - kernel: fused_add_rmsnorm_quant
    grid: B
    block: 256
    args: [out, input, residual, weight, scale, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_quant_b8xh8192 status=out_of_bounds level=quick says=1-byte
// The last thread of the last row stores a terminator.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

__device__ float add(__nv_bfloat16 x, __nv_bfloat16 r) {
  return __bfloat162float(x) + __bfloat162float(r);
}

extern "C" __global__ void fused_add_rmsnorm_quant(__nv_fp8_storage_t* out,
                                                   const __nv_bfloat16* input,
                                                   __nv_bfloat16* residual,
                                                   const __nv_bfloat16* weight, const float* scale,
                                                   int H, float eps) {
  __shared__ float partial[256];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    sum += h * h;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 128; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
    __syncthreads();
  }
  const float factor = rsqrtf(partial[0] / H + eps) / scale[0];
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h = add(input[row + column], residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    out[row + column] = __nv_cvt_float_to_fp8(h * factor * __bfloat162float(weight[column]),
                                              __NV_SATFINITE, __NV_E4M3);
  }
  if (threadIdx.x == 0 && blockIdx.x + 1 == gridDim.x) out[row + H] = 0;  // <- here
}
