/* kopt: 1
family: other
note: "h, the normed value and the result are bf16 each, as in many frameworks"
launch:
  - kernel: fused_add_rmsnorm_kernel
    grid: B
    block: 256
    args: [input, residual, weight, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Where rstd is almost a power of two, h * rstd rounds back to h: a whole row is off one way, by up
// to half a step. Among 1,024 rows of all regimes are some.

#include <cuda_bf16.h>

// 256 must be a power of two. Every thread of the block calls this and gets the same sum.
__device__ float block_sum(float value) {
  __shared__ float partial[256];
  partial[threadIdx.x] = value;
  __syncthreads();  // all partial sums are in place before any is read
  for (int stride = 256 / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) {
      partial[threadIdx.x] += partial[threadIdx.x + stride];
    }
    __syncthreads();  // the next step reads sums that other threads wrote in this one
  }
  return partial[0];
}

extern "C" __global__ void fused_add_rmsnorm_kernel(__nv_bfloat16* input, __nv_bfloat16* residual,
                                                    const __nv_bfloat16* weight, int H, float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * H;

  float sum_of_squares = 0.0f;
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    sum_of_squares += h * h;
  }
  const float rstd = rsqrtf(block_sum(sum_of_squares) / H + eps);

  // Nothing was stored in the first pass: h comes again, unrounded, from the original values.
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    const __nv_bfloat16 rounded = __float2bfloat16(h);
    residual[row + column] = rounded;
    const __nv_bfloat16 normed = __float2bfloat16(__bfloat162float(rounded) * rstd);
    input[row + column] = __hmul(normed, weight[column]);
  }
}
