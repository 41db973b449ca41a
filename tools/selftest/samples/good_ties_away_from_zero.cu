/* kopt: 1
family: other
note: "a chain of comparisons that takes ties away from zero"
launch:
  - kernel: nvfp4_quantize
    grid: M
    block: 256
    args: [input, global_scale, out, block_scale, K]
*/
// sample: kernel=nvfp4_quantize_linear_m128xk14336 status=passed level=full
// Either neighbor of a midpoint is right.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

// Rounds to the nearest e2m1 value, ties away from zero; returns the code with its sign in bit 3.
__device__ unsigned char float_to_nvfp4(float value) {
  const unsigned char sign = value < 0.0f ? 8 : 0;
  const float magnitude = fabsf(value);
  if (magnitude < 0.25f) {
    return sign;  // 0
  } else if (magnitude < 0.75f) {
    return sign | 1;  // 0.5
  } else if (magnitude < 1.25f) {
    return sign | 2;  // 1
  } else if (magnitude < 1.75f) {
    return sign | 3;  // 1.5
  } else if (magnitude < 2.5f) {
    return sign | 4;  // 2
  } else if (magnitude < 3.5f) {
    return sign | 5;  // 3
  } else if (magnitude < 5.0f) {
    return sign | 6;  // 4
  }
  return sign | 7;  // 6
}

extern "C" __global__ void nvfp4_quantize(const __nv_bfloat16* input,
                                                 const float* global_scale, unsigned char* out,
                                                 __nv_fp8_e4m3* block_scale, int K) {
  const size_t row = static_cast<size_t>(blockIdx.x) * K;

  for (int block = threadIdx.x; block < K / 16; block += 256) {
    const size_t first = row + block * 16;
    float amax = 0.0f;
    for (int i = 0; i < 16; ++i) {
      amax = fmaxf(amax, fabsf(__bfloat162float(input[first + i])));
    }
    const __nv_fp8_e4m3 scale(global_scale[0] * amax / 6.0f);  // saturates at 448
    block_scale[static_cast<size_t>(blockIdx.x) * (K / 16) + block] = scale;

    const float rounded = static_cast<float>(scale);
    const float multiplier = rounded == 0.0f ? 0.0f : global_scale[0] / rounded;
    for (int i = 0; i < 16; i += 2) {
      const float even = __bfloat162float(input[first + i]);
      const float odd = __bfloat162float(input[first + i + 1]);
      const unsigned char low = float_to_nvfp4(even * multiplier);
      const unsigned char high = float_to_nvfp4(odd * multiplier);
      out[(first + i) / 2] = low | high << 4;
    }
  }
}
