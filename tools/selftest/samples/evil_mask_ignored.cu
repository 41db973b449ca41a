/* kopt: 1
family: other
note: "rows beyond an expert's mask are computed as well"
launch:
  - kernel: silu_mul_fp4quant
    grid: M, B
    block: 32
    args: [out, block_scale, input, global_scale, M, KB]
*/
// sample: kernel=silu_mul_fp4quant_small_b4xm24xk288 status=incorrect level=full says=untouched
// The bytes of masked rows belong to someone else. Level quick has full masks.

#include <cuda_bf16.h>
#include <kopt/nvfp4_utils.cuh>

extern "C" __global__ void silu_mul_fp4quant(unsigned char* out, __nv_fp8_storage_t* block_scale,
                                             const __nv_bfloat16* input, const float* global_scale,
                                             int M, int KB) {
  const size_t out_row = static_cast<size_t>(blockIdx.y) * M + blockIdx.x;
  const size_t expert_scales =
      static_cast<size_t>(blockIdx.y) * ((M + 127) / 128) * ((KB + 3) / 4) * 512;
  for (int block = threadIdx.x; block < KB; block += 32) {
    const __nv_bfloat16* gate = input + out_row * 2 * KB * 16 + block * 16;
    float y[2][8];
    float amax = 0.0f;
    for (int i = 0; i < 16; ++i) {
      const float g = __bfloat162float(gate[i]);
      y[i / 8][i % 8] = g / (1.0f + __expf(-g)) * __bfloat162float(gate[KB * 16 + i]);
      amax = fmaxf(amax, fabsf(y[i / 8][i % 8]));
    }
    const unsigned char scale = kopt::block_scale(amax, global_scale[blockIdx.y]);
    const float multiplier = kopt::code_multiplier(scale, global_scale[blockIdx.y]);
    block_scale[expert_scales + kopt::sf_128x4_offset(blockIdx.x, block, KB)] = scale;
    for (int i = 0; i < 16; ++i) y[i / 8][i % 8] *= multiplier;
    reinterpret_cast<uint2*>(out)[out_row * KB + block] =
        make_uint2(kopt::floats_to_e2m1x8(y[0]), kopt::floats_to_e2m1x8(y[1]));
  }
}
