/* kopt: 1
family: other
note: "starting point: a block per row, scalar loads, tree reduction, second pass, branchy codes"
where: "true"
tune: {BLOCK: [128, 256, 512]}
launch:
  - kernel: add_rmsnorm_fp4quant_kernel
    grid: B
    block: BLOCK
    args: [input, residual, weight, out, block_scale, global_scale, H, eps]
*/
// Mapping: thread block b owns row b. First pass: thread t adds up columns t, t + BLOCK, ... Second
// pass: thread t quantises the blocks of 16 columns t, t + BLOCK, ... from the original values, so
// that the residual is stored by the one thread that still reads it.
// Shared memory: BLOCK floats, one partial sum of squares per thread (4 * BLOCK bytes).

#include <cuda_bf16.h>
#include <cuda_fp8.h>

// Rounds to the nearest e2m1 value, ties to the even code; returns the code with its sign in bit 3.
__device__ unsigned char float_to_nvfp4(float value) {
  const unsigned char sign = value < 0.0f ? 8 : 0;
  const float magnitude = fabsf(value);
  if (magnitude <= 0.25f) {
    return sign;  // 0
  } else if (magnitude < 0.75f) {
    return sign | 1;  // 0.5
  } else if (magnitude <= 1.25f) {
    return sign | 2;  // 1
  } else if (magnitude < 1.75f) {
    return sign | 3;  // 1.5
  } else if (magnitude <= 2.5f) {
    return sign | 4;  // 2
  } else if (magnitude < 3.5f) {
    return sign | 5;  // 3
  } else if (magnitude <= 5.0f) {
    return sign | 6;  // 4
  }
  return sign | 7;  // 6
}

// BLOCK must be a power of two. Every thread of the block calls this and gets the same sum.
__device__ float block_sum(float value) {
  __shared__ float partial[BLOCK];
  partial[threadIdx.x] = value;
  __syncthreads();  // all partial sums are in place before any is read
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) {
      partial[threadIdx.x] += partial[threadIdx.x + stride];
    }
    __syncthreads();  // the next step reads sums that other threads wrote in this one; the barrier
                      // of the last step also ends all reads of the old residual in the first pass
  }
  return partial[0];
}

extern "C" __global__ void add_rmsnorm_fp4quant_kernel(const __nv_bfloat16* input,
                                                       __nv_bfloat16* residual,
                                                       const __nv_bfloat16* weight,
                                                       unsigned char* out,
                                                       __nv_fp8_e4m3* block_scale,
                                                       const float* global_scale, int H,
                                                       float eps) {
  const size_t row = static_cast<size_t>(blockIdx.x) * H;

  float sum_of_squares = 0.0f;
  for (int column = threadIdx.x; column < H; column += BLOCK) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    sum_of_squares += h * h;
  }
  const float rstd = rsqrtf(block_sum(sum_of_squares) / H + eps);

  for (int block = threadIdx.x; block < H / 16; block += BLOCK) {
    float y[16];
    float amax = 0.0f;
    for (int i = 0; i < 16; ++i) {
      const int column = block * 16 + i;
      const float h =
          __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
      residual[row + column] = __float2bfloat16(h);
      y[i] = h * rstd * __bfloat162float(weight[column]);
      amax = fmaxf(amax, fabsf(y[i]));
    }
    const __nv_fp8_e4m3 scale(global_scale[0] * amax / 6.0f);  // saturates at 448
    block_scale[static_cast<size_t>(blockIdx.x) * (H / 16) + block] = scale;

    const float rounded = static_cast<float>(scale);
    const float multiplier = rounded == 0.0f ? 0.0f : global_scale[0] / rounded;
    for (int i = 0; i < 16; i += 2) {
      const unsigned char low = float_to_nvfp4(y[i] * multiplier);
      const unsigned char high = float_to_nvfp4(y[i + 1] * multiplier);
      out[(row + block * 16 + i) / 2] = low | high << 4;
    }
  }
}
