/* kopt: 1
family: other
note: "starting point: one block per row, scalar loads, silu computed twice, seven-way branches"
where: "true"
tune: {BLOCK: [128, 256, 512]}
launch:
  - kernel: silu_mul_fp4quant_kernel
    grid: M, B
    block: BLOCK
    args: [out, block_scale, input, global_scale, mask, M, K]
*/
// Mapping: thread block (m, b) owns row m of expert b; thread t owns the blocks of 16 columns t,
// t + BLOCK, ... and computes each twice: for its largest magnitude, then for its codes. Rows from
// mask[b] on are left alone. No shared memory, no barrier.

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

// Where the scale of `block` in `row` lies: tiles of 128 rows x 4 blocks, 512 bytes each. Within a
// tile rows r, r + 32, r + 64 and r + 96 share 16 bytes.
__device__ size_t scale_offset(int row, int block, int blocks_per_row) {
  const size_t tile = static_cast<size_t>(row / 128) * ((blocks_per_row + 3) / 4) + block / 4;
  return tile * 512 + (row % 32) * 16 + (row % 128) / 32 * 4 + block % 4;
}

// exp(-gate) may be infinite: the quotient is 0 then.
__device__ float silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return g / (1.0f + __expf(-g)) * __bfloat162float(up);
}

extern "C" __global__ void silu_mul_fp4quant_kernel(unsigned char* out, __nv_fp8_e4m3* block_scale,
                                                    const __nv_bfloat16* input,
                                                    const float* global_scale, const int* mask,
                                                    int M, int K) {
  const int row = blockIdx.x;
  const int expert = blockIdx.y;
  if (row >= mask[expert]) {
    return;
  }
  const size_t out_row = (static_cast<size_t>(expert) * M + row) * K;
  const __nv_bfloat16* gate = input + 2 * out_row;
  const __nv_bfloat16* up = gate + K;
  // Every expert has its own tiles: rows padded to 128, blocks to 4.
  const size_t expert_scales =
      static_cast<size_t>(expert) * ((M + 127) / 128) * ((K / 16 + 3) / 4) * 512;

  for (int block = threadIdx.x; block < K / 16; block += BLOCK) {
    const int first = block * 16;
    float amax = 0.0f;
    for (int i = first; i < first + 16; ++i) {
      amax = fmaxf(amax, fabsf(silu_mul(gate[i], up[i])));
    }
    const __nv_fp8_e4m3 scale(global_scale[expert] * amax / 6.0f);  // saturates at 448
    block_scale[expert_scales + scale_offset(row, block, K / 16)] = scale;

    const float rounded = static_cast<float>(scale);
    const float multiplier = rounded == 0.0f ? 0.0f : global_scale[expert] / rounded;
    for (int i = first; i < first + 16; i += 2) {
      const unsigned char low = float_to_nvfp4(silu_mul(gate[i], up[i]) * multiplier);
      const unsigned char high = float_to_nvfp4(silu_mul(gate[i + 1], up[i + 1]) * multiplier);
      out[(out_row + i) / 2] = low | high << 4;
    }
  }
}
