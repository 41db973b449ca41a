/* kopt: 1
family: [fp4_intrinsics, layout]
note: "128x4 scale tiles: four neighbouring lanes make the four scales of a tile row, one store"
launch:
  - kernel: nvfp4_quantize_tiled
    grid: ceil_div(KB, 128), M
    block: 128
    args: [input, global_scale, out, block_scale, KB]
*/
// sample: kernel=nvfp4_quantize_padded_m40xk288 status=passed level=full
// Mapping: thread t of block (x, m) owns scale block 128 x + t of row m: 16 columns. Scales of
// blocks 4 i to 4 i + 3 lie side by side; lanes of a full group hand theirs to the first, which
// stores 4 bytes. Blocks at the end of a row store single bytes: padding stays as it is.

#include <cuda_bf16.h>
#include <kopt/nvfp4_utils.cuh>

__device__ void load_block(const uint4* from, float (&low)[8], float (&high)[8], float& amax) {
  const uint4 first = from[0], second = from[1];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(&first)[i]);
    const float2 b = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(&second)[i]);
    low[2 * i] = a.x;
    low[2 * i + 1] = a.y;
    high[2 * i] = b.x;
    high[2 * i + 1] = b.y;
    amax = fmaxf(amax, fmaxf(fmaxf(fabsf(a.x), fabsf(a.y)), fmaxf(fabsf(b.x), fabsf(b.y))));
  }
}

extern "C" __global__ void __launch_bounds__(128)
    nvfp4_quantize_tiled(const __nv_bfloat16* input, const float* global_scale, unsigned char* out,
                         __nv_fp8_storage_t* block_scale, int KB) {
  const int block = blockIdx.x * 128 + threadIdx.x;
  const int row = blockIdx.y;
  const bool has_block = block < KB;
  const size_t at = static_cast<size_t>(row) * KB + block;
  float low[8] = {}, high[8] = {};
  float amax = 0.0f;
  if (has_block) load_block(reinterpret_cast<const uint4*>(input) + 2 * at, low, high, amax);
  const unsigned scale = kopt::block_scale(amax, global_scale[0]);
  const float multiplier = kopt::code_multiplier(scale, global_scale[0]);

  unsigned four = scale << 8 * (threadIdx.x % 4);
  four |= __shfl_xor_sync(0xffffffffu, four, 1);
  four |= __shfl_xor_sync(0xffffffffu, four, 2);
  if (!has_block) return;
  __nv_fp8_storage_t* place = block_scale + kopt::sf_128x4_offset(row, block, KB);
  if (block / 4 * 4 + 4 > KB) {
    *place = static_cast<__nv_fp8_storage_t>(scale);
  } else if (block % 4 == 0) {
    *reinterpret_cast<unsigned*>(place) = four;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    low[i] *= multiplier;
    high[i] *= multiplier;
  }
  reinterpret_cast<uint2*>(out)[at] =
      make_uint2(kopt::floats_to_e2m1x8(low), kopt::floats_to_e2m1x8(high));
}
