/* kopt: 1
family: [fp4_intrinsics, register_caching, vectorization, algebra, packed_simd, shape_specialization]
note: "a row in registers over one barrier; 32-byte accesses, two floats an instruction, hardware e2m1; static tensors loaded before the producer ends"
where: H % 1024 == 0 and H <= 16384
specialize: [H]
tune: {COLUMNS: [16, 8], STEPS: [1, 2], WITH_SCALE_WORDS: [1, 0]}
tune_where: [H // (COLUMNS * STEPS) <= 1024]
launch:
  - kernel: add_rmsnorm_fp4quant_rows
    grid: B
    block: H // (COLUMNS * STEPS)
    pdl: true
    args: [input, residual, weight, out, block_scale, global_scale, eps]
*/
// Mapping: thread block b owns row b; thread t owns COLUMNS columns from t COLUMNS on, and in a
// further step those kBlock COLUMNS columns on. With COLUMNS 16 a thread owns whole scale blocks,
// with 8 two neighbouring lanes share one. Shared memory: a partial sum of squares for each warp.
//
// The largest |y| of a scale block is rstd times the largest |h * weight|, so that products and
// maximum need no rstd: they fill the wait for it, and each value is then multiplied once more.

#include <cuda_bf16.h>
#include <kopt/float2_math.cuh>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>
#include <kopt/nvfp4_utils.cuh>

constexpr int kVectors = KOPT_H / COLUMNS;  // of a row
constexpr int kBlock = kVectors / STEPS;
constexpr int kWarps = kBlock / 32;
constexpr int kScales = KOPT_H / kopt::kNvfp4BlockSize;  // of a row
constexpr int kLanesPerScale = kopt::kNvfp4BlockSize / COLUMNS;
constexpr unsigned kAllLanes = 0xffffffffu;

struct alignas(2 * COLUMNS) Vector {
  unsigned pairs[COLUMNS / 2];  // of bf16
};

struct alignas(COLUMNS / 2) Codes {
  unsigned words[COLUMNS / 8];
};

__device__ Vector load_vector(const __nv_bfloat16* tensor, unsigned vector) {
  if constexpr (COLUMNS == 16) {
    const kopt::uint8x32_t v = kopt::load_32(tensor + static_cast<size_t>(vector) * COLUMNS);
    return *reinterpret_cast<const Vector*>(&v);
  } else {
    return reinterpret_cast<const Vector*>(tensor)[vector];
  }
}

__device__ void store_vector(__nv_bfloat16* tensor, unsigned vector, const Vector& v) {
  if constexpr (COLUMNS == 16) {
    kopt::store_32(tensor + static_cast<size_t>(vector) * COLUMNS,
                   *reinterpret_cast<const kopt::uint8x32_t*>(&v));
  } else {
    reinterpret_cast<Vector*>(tensor)[vector] = v;
  }
}

__device__ float2 unpack(unsigned pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

__device__ unsigned pack(float2 values) {
  const __nv_bfloat162 pair = __float22bfloat162_rn(values);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Every thread of the block calls this and gets the same sum.
__device__ float block_sum(float value) {
  __shared__ alignas(16) float sums[kWarps];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = sums[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) total += sums[warp];
  return total;
}

__device__ unsigned scale_offset(unsigned row, unsigned block) {
  return kopt::sf_128x4_offset(row, block, kScales);
}

// Stores the scale of a block. Four neighbouring ones lie side by side: their lanes hand them to
// the first, which stores a word.
__device__ void store_scale(unsigned char* block_scale, unsigned block, unsigned scale) {
  const unsigned lane = threadIdx.x % (4 * kLanesPerScale);
  if constexpr (WITH_SCALE_WORDS) {
    scale <<= lane / kLanesPerScale * 8;
    scale |= __shfl_xor_sync(kAllLanes, scale, kLanesPerScale);
    scale |= __shfl_xor_sync(kAllLanes, scale, 2 * kLanesPerScale);
    if (lane != 0) return;
    *reinterpret_cast<unsigned*>(block_scale + scale_offset(blockIdx.x, block)) = scale;
  } else if (lane % kLanesPerScale == 0) {
    block_scale[scale_offset(blockIdx.x, block)] = static_cast<unsigned char>(scale);
  }
}

extern "C" __global__ void __launch_bounds__(kBlock)
    add_rmsnorm_fp4quant_rows(const __nv_bfloat16* input, __nv_bfloat16* residual,
                              const __nv_bfloat16* weight, unsigned char* out,
                              __nv_fp8_storage_t* block_scale, const float* global_scale,
                              float eps) {
  kopt::griddepcontrol_launch_dependents();
  const unsigned row = blockIdx.x * kVectors;

  Vector w[STEPS], x[STEPS], r[STEPS];
  const float global = *global_scale;
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    w[step] = load_vector(weight, step * kBlock + threadIdx.x);
  }
  kopt::griddepcontrol_wait();  // all but weight and global_scale may be the last kernel's work
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    x[step] = load_vector(input, row + step * kBlock + threadIdx.x);
    r[step] = load_vector(residual, row + step * kBlock + threadIdx.x);
  }

  float2 weighted[STEPS][COLUMNS / 2];
  float amax[STEPS] = {};
  float2 squares = make_float2(0.0f, 0.0f);
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    Vector sum;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i) {
      const float2 h = kopt::add2(unpack(x[step].pairs[i]), unpack(r[step].pairs[i]));
      const float2 y = kopt::mul2(h, unpack(w[step].pairs[i]));
      sum.pairs[i] = pack(h);
      squares = kopt::fma2(h, h, squares);
      weighted[step][i] = y;
      amax[step] = fmaxf(amax[step], fmaxf(fabsf(y.x), fabsf(y.y)));
    }
    store_vector(residual, row + step * kBlock + threadIdx.x, sum);
    if constexpr (kLanesPerScale == 2) {
      amax[step] = fmaxf(amax[step], __shfl_xor_sync(kAllLanes, amax[step], 1));
    }
  }
  const float rstd = rsqrtf(block_sum(squares.x + squares.y) / KOPT_H + eps);

#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const unsigned vector = step * kBlock + threadIdx.x;
    const unsigned char scale = kopt::block_scale(rstd * amax[step], global);
    const float multiplier = rstd * kopt::code_multiplier(scale, global);
    Codes codes;
#pragma unroll
    for (int word = 0; word < COLUMNS / 8; ++word) {
      float values[8];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 scaled =
            kopt::mul2(weighted[step][4 * word + i], make_float2(multiplier, multiplier));
        values[2 * i] = scaled.x;
        values[2 * i + 1] = scaled.y;
      }
      codes.words[word] = kopt::floats_to_e2m1x8(values);
    }
    reinterpret_cast<Codes*>(out)[row + vector] = codes;
    store_scale(block_scale, vector / kLanesPerScale, scale);
  }
}
