/* kopt: 1
family: [fp4_intrinsics, vectorization, ilp_unroll, packed_simd, algebra, layout]
note: "a scale block a thread and row: two 32-byte loads, one 8-byte store; one reciprocal for two gates; four lanes turn their scales into words"
where: K % 256 == 0
specialize: [K]
tune: {ROWS: [4, 1], BLOCK: [128, 256, 64, 512], MASK_FIRST: [1, 0], WITH_PAIRED_RECIPROCAL: [1, 0]}
launch:
  - kernel: silu_mul_fp4quant_blocks
    grid: ceil_div(M, 128) * (128 // ROWS) * (K // 16) // BLOCK, B
    block: BLOCK
    pdl: true
    args: [out, block_scale, input, global_scale, mask, M]
*/
// Mapping: thread blocks (x, b) serve expert b; every thread owns one scale block (16 columns) in
// ROWS rows, 32 apart, of 128. Threads go through the scale blocks of a row first, then through such
// groups of rows; where a row ends within a thread block does not matter. Warps whose rows are all
// beyond the mask end at once. No shared memory, no barrier.

#include <cuda_bf16.h>
#include <kopt/float2_math.cuh>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>
#include <kopt/nvfp4_utils.cuh>

constexpr int kScales = KOPT_K / kopt::kNvfp4BlockSize;  // of a row
constexpr int kGroups = 128 / ROWS;                      // of rows
constexpr unsigned kAllLanes = 0xffffffffu;

struct alignas(32) Vector {
  unsigned pairs[8];  // of bf16
};

__device__ Vector load_vector(const __nv_bfloat16* from) {
  const kopt::uint8x32_t v = kopt::load_32(from);
  return *reinterpret_cast<const Vector*>(&v);
}

__device__ float2 unpack(unsigned pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

// Returns gate / (1 + exp(-gate)) of a bf16 pair. One reciprocal of the product serves both: the
// special function unit would else be as busy as DRAM. Gates below -40 count as -40, so that the
// product stays finite: at most 2e-16 is wrong.
__device__ float2 silu(unsigned pair) {
  constexpr float kMinusLog2E = -1.4426950408889634f;
  const __nv_bfloat162 limit = __float2bfloat162_rn(-40.0f);
  const __nv_bfloat162 limited = __hmax2(*reinterpret_cast<const __nv_bfloat162*>(&pair), limit);
  const float2 gate = unpack(*reinterpret_cast<const unsigned*>(&limited));
  const float2 power = kopt::mul2(gate, make_float2(kMinusLog2E, kMinusLog2E));
  const float2 below =
      kopt::add2(make_float2(exp2f(power.x), exp2f(power.y)), make_float2(1.0f, 1.0f));
  if constexpr (WITH_PAIRED_RECIPROCAL) {
    const float both = 1.0f / (below.x * below.y);
    return kopt::mul2(gate, kopt::mul2(make_float2(both, both), make_float2(below.y, below.x)));
  } else {
    return make_float2(__fdividef(gate.x, below.x), __fdividef(gate.y, below.y));
  }
}

// Returns the scale of silu(gate) * up, and the codes.
__device__ unsigned char quantize(const Vector& gate, const Vector& up, float global,
                                  uint2& codes) {
  float2 y[8];
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    y[i] = kopt::mul2(silu(gate.pairs[i]), unpack(up.pairs[i]));
    amax = fmaxf(amax, fmaxf(fabsf(y[i].x), fabsf(y[i].y)));
  }
  const unsigned char scale = kopt::block_scale(amax, global);
  const float multiplier = kopt::code_multiplier(scale, global);
  unsigned words[2];
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    float values[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 scaled = kopt::mul2(y[4 * word + i], make_float2(multiplier, multiplier));
      values[2 * i] = scaled.x;
      values[2 * i + 1] = scaled.y;
    }
    words[word] = kopt::floats_to_e2m1x8(values);
  }
  codes = make_uint2(words[0], words[1]);
  return scale;
}

// Byte i of lane j becomes byte j of lane i, for each four lanes.
__device__ unsigned transpose_bytes(unsigned word) {
  const unsigned lane = threadIdx.x % 4;
  unsigned other = __shfl_xor_sync(kAllLanes, word, 1);
  word = __byte_perm(word, other, lane & 1 ? 0x3715 : 0x6240);
  other = __shfl_xor_sync(kAllLanes, word, 2);
  return __byte_perm(word, other, lane & 2 ? 0x3276 : 0x5410);
}

__device__ unsigned scale_offset(unsigned expert, unsigned row, unsigned block, unsigned M) {
  return (expert * M + row) * kScales + block;
}

// What a thread owns: `block` of the rows `first_row` + i kGroups of `expert`.
struct Place {
  unsigned expert, first_row, block;
};

__device__ Place my_place() {
  const unsigned thread = blockIdx.x * BLOCK + threadIdx.x, group = thread / kScales;
  return {blockIdx.y, group / kGroups * 128 + group % kGroups, thread % kScales};
}

// Stores the scales of ROWS rows as words of four neighbouring blocks: with ROWS 4 each lane the
// word of one row, else the first of four lanes that of the only row. `valid` rows count.
__device__ void store_scales(unsigned char* block_scale, const Place& place, unsigned scales,
                             unsigned valid, unsigned M) {
  const unsigned lane = threadIdx.x % 4;
  const unsigned row = place.first_row + (ROWS == 4 ? kGroups * lane : 0);
  if constexpr (ROWS == 4) {
    scales = transpose_bytes(scales);
  } else {
    scales <<= 8 * lane;
    scales |= __shfl_xor_sync(kAllLanes, scales, 1);
    scales |= __shfl_xor_sync(kAllLanes, scales, 2);
    if (lane != 0) return;
  }
  if (row < valid) {
    unsigned char* to = block_scale + scale_offset(place.expert, row, place.block - lane, M);
    *reinterpret_cast<unsigned*>(to) = scales;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    silu_mul_fp4quant_blocks(unsigned char* out, __nv_fp8_storage_t* block_scale,
                             const __nv_bfloat16* input, const float* global_scale,
                             const int* mask, int M) {
  kopt::griddepcontrol_launch_dependents();
  const Place place = my_place();
  const float global = global_scale[place.expert];
  kopt::griddepcontrol_wait();  // all but global_scale may be the last kernel's work
  const unsigned valid = min(mask[place.expert], M), loaded = MASK_FIRST ? valid : M;
  if (__all_sync(kAllLanes, place.first_row >= loaded)) return;

  Vector gate[ROWS] = {}, up[ROWS] = {};
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const unsigned row = place.first_row + i * kGroups;
    const size_t at = (static_cast<size_t>(place.expert) * M + row) * 2 * KOPT_K +
                      place.block * kopt::kNvfp4BlockSize;
    if (row < loaded) {
      gate[i] = load_vector(input + at);
      up[i] = load_vector(input + at + KOPT_K);
    }
  }
  unsigned scales = 0;
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const unsigned row = place.first_row + i * kGroups;
    uint2 codes;
    scales |= static_cast<unsigned>(quantize(gate[i], up[i], global, codes)) << 8 * i;
    const size_t at = (static_cast<size_t>(place.expert) * M + row) * kScales + place.block;
    if (row < valid) reinterpret_cast<uint2*>(out)[at] = codes;
  }
  store_scales(block_scale, place, scales, valid, M);
}
