// NVFP4 building blocks: e2m1 codes, e4m3 block scales, and where a scale lies in 128x4 tiles.
//
// The unsuffixed e2m1 functions take the hardware's conversion where there is one (compute
// capability 10.0 and later, built for sm_100a or another feature-specific target: one instruction
// for two values) and the software form everywhere else, CPUs included. Both give the same code for
// every float: nearest, ties to even, saturating to +-6; NaN gives +6.
//
// Source: OCP Microscaling Formats 1.0 (e2m1); OCP FP8 1.0 (e4m3); PTX ISA, cvt .e2m1x2, .e4m3x2.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

namespace kopt {

constexpr int kNvfp4BlockSize = 16;
constexpr float kE2m1Max = 6.0f;
constexpr float kE4m3Max = 448.0f;

namespace detail {

__device__ __forceinline__ unsigned bits_of(float x) {
#if defined(KOPT_SIM)
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
#else
  return __float_as_uint(x);
#endif
}

}  // namespace detail

// Returns the e2m1 code of x (sign in bit 3) in integer arithmetic and one addition.
//
// From 1 on, the rounding adds half of the last kept bit to the float's own bits, and a carry moves
// on into the exponent as it should. Below 1 codes are multiples of 0.5, the last place of a float
// near 2^22: the addition rounds.
__device__ __forceinline__ unsigned float_to_e2m1_software(float x) {
  const unsigned bits = detail::bits_of(x);
  const unsigned absolute = bits & 0x7fffffffu;
  const unsigned sign = absolute > 0x7f800000u ? 0u : bits >> 28 & 8u;  // NaN gives +6
  const unsigned limited = absolute < 0x40c00000u ? absolute : 0x40c00000u;  // 6.0f
  const unsigned rounded = limited + 0x1fffffu + (limited >> 22 & 1u);
  const unsigned from_one = (rounded >> 22) - (126u << 1);  // e2m1's bias is 1, fp32's is 127
  const float magnitude = x < 0.0f ? -x : x;
  const unsigned below_one = detail::bits_of(magnitude + 4194304.0f) & 3u;
  return sign | (limited < 0x3f800000u ? below_one : from_one);
}

// Returns two codes in a byte, x in the low nibble.
__device__ __forceinline__ unsigned char float2_to_e2m1x2_software(float2 values) {
  return static_cast<unsigned char>(float_to_e2m1_software(values.x) |
                                    float_to_e2m1_software(values.y) << 4);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)

__device__ __forceinline__ unsigned char float2_to_e2m1x2(float2 values) {
  return __nv_cvt_float2_to_fp4x2(values, __NV_E2M1, cudaRoundNearest);
}

#else

__device__ __forceinline__ unsigned char float2_to_e2m1x2(float2 values) {
#if defined(KOPT_SIM)
  kopt_sim_cpu_body("float2_to_e2m1x2");
#endif
  return float2_to_e2m1x2_software(values);
}

#endif

__device__ __forceinline__ unsigned float_to_e2m1(float x) {
  return float2_to_e2m1x2(make_float2(x, 0.0f)) & 0xfu;
}

// Returns eight codes, values[0] in the lowest nibble: four bytes of a row-major code tensor.
//
// In hardware the four bytes are named in one PTX block: each conversion merges its byte into the
// word, and no further instruction puts them together.
__device__ __forceinline__ unsigned floats_to_e2m1x8(const float (&values)[8]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned codes;
  asm("{\n\t.reg .b8 b0, b1, b2, b3;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 b0, %2, %1;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 b1, %4, %3;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 b2, %6, %5;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 b3, %8, %7;\n\t"
      "mov.b32 %0, {b0, b1, b2, b3};\n\t}"
      : "=r"(codes)
      : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]),
        "f"(values[5]), "f"(values[6]), "f"(values[7]));
  return codes;
#else
  const unsigned b0 = float2_to_e2m1x2(make_float2(values[0], values[1]));
  const unsigned b1 = float2_to_e2m1x2(make_float2(values[2], values[3]));
  const unsigned b2 = float2_to_e2m1x2(make_float2(values[4], values[5]));
  const unsigned b3 = float2_to_e2m1x2(make_float2(values[6], values[7]));
  return b0 | b1 << 8 | b2 << 16 | b3 << 24;
#endif
}

// Returns the value of an e2m1 code: 0, 0.5, 1, 1.5, 2, 3, 4 or 6 with its sign.
__device__ __forceinline__ float e2m1_to_float(unsigned code) {
  const unsigned magnitude = code & 7u;
  const float small = 0.5f * static_cast<float>(magnitude);  // codes 0 to 4
  const float value = magnitude < 5u ? small : magnitude == 7u ? 6.0f : magnitude - 2.0f;
  return code & 8u ? -value : value;
}

// Returns x as e4m3, nearest, ties to even, saturating to +-448.
__device__ __forceinline__ unsigned char float_to_e4m3(float x) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ float e4m3_to_float(unsigned char code) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

// Returns the e4m3 scale of a block whose largest magnitude is amax.
__device__ __forceinline__ unsigned char block_scale(float amax, float global_scale) {
  return float_to_e4m3(global_scale * (amax * (1.0f / kE2m1Max)));
}

// Returns what a block's values are multiplied with before they become codes; 0 for a zero scale,
// which all-zero blocks have and blocks that are too small for one.
__device__ __forceinline__ float code_multiplier(unsigned char scale, float global_scale) {
  return scale == 0 ? 0.0f : global_scale / e4m3_to_float(scale);
}

// Returns the byte offset of the scale of `block` in `row` within 128x4 tiles. Rows are padded to
// 128 and blocks to 4; buffers of 2^31 bytes and more are out of range.
// Source: NVIDIA cuBLAS documentation, "1D block scaling factors layout".
__device__ __forceinline__ int sf_128x4_offset(int row, int block, int blocks_per_row) {
  const int tile = row / 128 * ((blocks_per_row + 3) / 4) + block / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

}  // namespace kopt
