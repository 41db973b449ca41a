/* kopt: 1
family: other
note: "leaves the last 16 columns out of the sum of squares"
where: "B <= 128"
tune: {BLOCK: [256]}
launch:
  - kernel: fused_add_rmsnorm_quant_kernel
    grid: B
    block: BLOCK
    args: [out, input, residual, weight, scale, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_quant_b128xh8192 status=incorrect level=full
// One part in 512 of a sum: only rows whose last columns matter show it, one row in two or three.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

// BLOCK must be a power of two. Every thread of the block calls this and gets the same sum.
__device__ float block_sum(float value) {
  __shared__ float partial[BLOCK];
  partial[threadIdx.x] = value;
  __syncthreads();  // all partial sums are in place before any is read
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) {
      partial[threadIdx.x] += partial[threadIdx.x + stride];
    }
    __syncthreads();  // the next step reads sums that other threads wrote in this one
  }
  return partial[0];
}

extern "C" __global__ void fused_add_rmsnorm_quant_kernel(
    __nv_fp8_storage_t* out, const __nv_bfloat16* input, __nv_bfloat16* residual,
    const __nv_bfloat16* weight, const float* scale, int H, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * H;

  float sum_of_squares = 0.0f;
  for (int column = threadIdx.x; column < H - 16; column += BLOCK) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    sum_of_squares += h * h;
  }
  const float rstd = rsqrtf(block_sum(sum_of_squares) / H + eps);
  const float inverse_scale = 1.0f / scale[0];

  // Nothing was stored in the first pass: h comes again, unrounded, from the original values.
  for (int column = threadIdx.x; column < H; column += BLOCK) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    const float normed = h * rstd * __bfloat162float(weight[column]);
    out[row + column] = __nv_cvt_float_to_fp8(normed * inverse_scale, __NV_SATFINITE, __NV_E4M3);
  }
}
