/* kopt: 1
family: [fp4_intrinsics, vectorization, ilp_unroll, packed_simd, layout]
note: "a scale block a thread and row: one 32-byte load, one 8-byte store; ROWS rows in flight; four lanes turn their scales into words"
where: K % 256 == 0
specialize: [K]
tune: {ROWS: [4, 1], BLOCK: [128, 256, 64, 512]}
launch:
  - kernel: nvfp4_quantize_blocks
    grid: ceil_div(M, 128) * (128 // ROWS) * (K // 16) // BLOCK
    block: BLOCK
    pdl: true
    args: [input, global_scale, out, block_scale, M]
*/
// Mapping: every thread owns one scale block (16 columns) in ROWS rows, 32 apart, of 128. Threads
// go through the scale blocks of a row first, then through such groups of rows; where a row ends
// within a thread block does not matter. No shared memory, no barrier.

#include <cuda_bf16.h>
#include <kopt/float2_math.cuh>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>
#include <kopt/nvfp4_utils.cuh>

constexpr int kScales = KOPT_K / kopt::kNvfp4BlockSize;  // of a row
constexpr int kGroups = 128 / ROWS;                      // of rows
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __nv_bfloat162 bf16_pair(unsigned pair) {
  return *reinterpret_cast<const __nv_bfloat162*>(&pair);
}

__device__ float2 unpack(unsigned pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

// Returns the largest magnitude of 16 values, two at a time: bf16 is ordered as it is.
__device__ float largest(const unsigned (&pairs)[8]) {
  __nv_bfloat162 most = __habs2(bf16_pair(pairs[0]));
#pragma unroll
  for (int i = 1; i < 8; ++i) most = __hmax2(most, __habs2(bf16_pair(pairs[i])));
  return __bfloat162float(__hmax(most.x, most.y));
}

__device__ uint2 codes_of(const unsigned (&pairs)[8], float multiplier) {
  unsigned words[2];
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    float values[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 scaled =
          kopt::mul2(unpack(pairs[4 * word + i]), make_float2(multiplier, multiplier));
      values[2 * i] = scaled.x;
      values[2 * i + 1] = scaled.y;
    }
    words[word] = kopt::floats_to_e2m1x8(values);
  }
  return make_uint2(words[0], words[1]);
}

// Byte i of lane j becomes byte j of lane i, for each four lanes.
__device__ unsigned transpose_bytes(unsigned word) {
  const unsigned lane = threadIdx.x % 4;
  unsigned other = __shfl_xor_sync(kAllLanes, word, 1);
  word = __byte_perm(word, other, lane & 1 ? 0x3715 : 0x6240);
  other = __shfl_xor_sync(kAllLanes, word, 2);
  return __byte_perm(word, other, lane & 2 ? 0x3276 : 0x5410);
}

__device__ unsigned scale_offset(unsigned row, unsigned block) { return row * kScales + block; }

// What a thread owns: `block` of the rows `first_row` + i kGroups.
struct Place {
  unsigned first_row, block;
};

__device__ Place my_place() {
  const unsigned thread = blockIdx.x * BLOCK + threadIdx.x, group = thread / kScales;
  return {group / kGroups * 128 + group % kGroups, thread % kScales};
}

// Stores the scales of ROWS rows as words of four neighbouring blocks: with ROWS 4 each lane the
// word of one row, else the first of four lanes that of the only row.
__device__ void store_scales(unsigned char* block_scale, const Place& place, unsigned scales,
                             unsigned rows) {
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
  if (row < rows) {
    *reinterpret_cast<unsigned*>(block_scale + scale_offset(row, place.block - lane)) = scales;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    nvfp4_quantize_blocks(const __nv_bfloat16* input, const float* global_scale,
                          unsigned char* out, __nv_fp8_storage_t* block_scale, int M) {
  kopt::griddepcontrol_launch_dependents();
  const Place place = my_place();
  const float global = *global_scale;
  kopt::griddepcontrol_wait();  // all but global_scale may be the last kernel's work

  unsigned pairs[ROWS][8] = {};
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const unsigned row = place.first_row + i * kGroups;
    const size_t at = static_cast<size_t>(row) * kScales + place.block;
    if (row < M) {
      const kopt::uint8x32_t v = kopt::load_32(input + at * kopt::kNvfp4BlockSize);
      *reinterpret_cast<kopt::uint8x32_t*>(pairs[i]) = v;
    }
  }
  unsigned scales = 0;
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const unsigned row = place.first_row + i * kGroups;
    const size_t at = static_cast<size_t>(row) * kScales + place.block;
    const unsigned char scale = kopt::block_scale(largest(pairs[i]), global);
    const uint2 codes = codes_of(pairs[i], kopt::code_multiplier(scale, global));
    if (row < M) reinterpret_cast<uint2*>(out)[at] = codes;
    scales |= static_cast<unsigned>(scale) << 8 * i;
  }
  store_scales(block_scale, place, scales, M);
}
