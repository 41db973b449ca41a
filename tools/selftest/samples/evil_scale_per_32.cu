/* kopt: 1
family: other
note: "one scale for 32 values, stored twice"
launch:
  - kernel: nvfp4_quantize
    grid: M
    block: 64
    args: [input, global_scale, out, block_scale, KB]
*/
// sample: kernel=nvfp4_quantize_padded_m40xk288 status=incorrect level=quick says=scale
// MXFP4's block size with NVFP4's format.

#include <cuda_bf16.h>
#include <kopt/nvfp4_utils.cuh>

extern "C" __global__ void nvfp4_quantize(const __nv_bfloat16* input, const float* global_scale,
                                          unsigned char* out, __nv_fp8_storage_t* block_scale,
                                          int KB) {
  const int row = blockIdx.x;
  for (int block = threadIdx.x; block < KB; block += 64) {
    const size_t at = static_cast<size_t>(row) * KB + block;
    float y[2][8];
    float amax = 0.0f;
    for (int i = 0; i < 16; ++i) {
      y[i / 8][i % 8] = __bfloat162float(input[at * 16 + i]);
      amax = fmaxf(amax, fabsf(y[i / 8][i % 8]));
    }
    for (int i = 0; i < 16; ++i) {
      amax = fmaxf(amax, fabsf(__bfloat162float(input[(at ^ 1) * 16 + i])));
    }
    const unsigned char scale = kopt::block_scale(amax, global_scale[0]);
    const float multiplier = kopt::code_multiplier(scale, global_scale[0]);
    block_scale[kopt::sf_128x4_offset(row, block, KB)] = scale;
    for (int i = 0; i < 16; ++i) y[i / 8][i % 8] *= multiplier;
    reinterpret_cast<uint2*>(out)[at] =
        make_uint2(kopt::floats_to_e2m1x8(y[0]), kopt::floats_to_e2m1x8(y[1]));
  }
}
