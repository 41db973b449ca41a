/* kopt: 1
family: [clusters, register_caching, algebra]
note: >-
  A row to a cluster, so that its rows use many SMs' paths to L2. Beyond 512 rows, where eight divides them, eight rows
  to a cluster: a team of warps for each, a part of every row in each block, so that the scales of neighboring rows,
  which lie side by side, are stored together instead of four bytes each. Each warp sends its partial sum to every
  block by st.async, which an mbarrier of the row counts, without fence or cluster barrier between loads and stores.
  The row stays in registers; the product with the weight comes before the sums are there.
where: "H % 7168 == 0"
specialize: [H]
tune: {ROWS: [1, 8], BLOCK: [128, 512], SPLIT: [7], TRIGGER: [0], HINT: [1, 0], MIN_BLOCKS: [1, 4]}
tune_where: ["H % (BLOCK // ROWS * 8 * SPLIT) == 0", "BLOCK % (32 * ROWS) == 0", "BLOCK * MIN_BLOCKS <= 2048"]
variants:
  - when: "B <= 16"
    set: {ROWS: 1, BLOCK: 128, SPLIT: 7, TRIGGER: 0, HINT: 1, MIN_BLOCKS: 1}
    launch:
      - kernel: norm_block_quant_rows
        grid: B * SPLIT // ROWS
        block: BLOCK
        cluster: SPLIT
        pdl: true
        args: [out, block_scale, normed_out, input, residual, weight, BP, eps]
  - when: "B > 512 and B % 8 == 0"
    set: {ROWS: 8, BLOCK: 512, SPLIT: 7, TRIGGER: 0, HINT: 0, MIN_BLOCKS: 4}
    launch:
      - kernel: norm_block_quant_rows
        grid: B * SPLIT // ROWS
        block: BLOCK
        cluster: SPLIT
        pdl: true
        args: [out, block_scale, normed_out, input, residual, weight, BP, eps]
  - when: "true"
    set: {ROWS: 1, BLOCK: 128, SPLIT: 7, TRIGGER: 0, HINT: 0, MIN_BLOCKS: 1}
    launch:
      - kernel: norm_block_quant_rows
        grid: B * SPLIT // ROWS
        block: BLOCK
        cluster: SPLIT
        pdl: true
        args: [out, block_scale, normed_out, input, residual, weight, BP, eps]
*/
// Mapping: a cluster of SPLIT blocks owns ROWS rows; team i of each block, kTeam threads, has row i; its thread t in
// block k owns the 8 columns from 8 (k kOwn kTeam + t) on, kOwn times, each 8 kTeam columns further. Shared memory: the
// partial sums of all warps of each row, and the scales of the block's columns.
// Order: mbarrier and weights before the wait; loads of x and r -> their sum, stored at once -> squares -> partial sums
// to all blocks -> y, scales and codes. A thread reads all partial sums as one 16 byte word and a few shuffles.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <kopt/cluster_exchange.cuh>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

constexpr int kVectors = KOPT_H / 8;
constexpr int kTeam = BLOCK / ROWS;  // threads of a row in a block
static_assert(kTeam % 32 == 0, "whole warps");
constexpr int kOwn = kVectors / (kTeam * SPLIT);
static_assert(kVectors % (kTeam * SPLIT) == 0, "every thread has the same number of vectors");
constexpr int kWarps = kTeam / 32;
constexpr int kScales = kOwn * kTeam / 16;  // of a row in a block
constexpr int kSums = SPLIT * kWarps;
constexpr int kSlots = kSums > 32 ? 64 : kSums > 16 ? 32 : kSums > 8 ? 16 : kSums > 4 ? 8 : 4;  // zero beyond kSums
constexpr int kQuads = kSlots / 4;  // 16 byte words of them
static_assert(kSums <= 64, "a few shuffles add them");

struct alignas(8) Codes {
  unsigned short pairs[4];
};
struct alignas(16) Vector {
  unsigned pairs[4];
};
// A bf16 is the upper half of an fp32: the low one of a pair is shifted there, the high one masked.
__device__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ void put(Vector* at, const Vector& v) {
  if (HINT >= 1) {
    kopt::store_streaming_16(at, *reinterpret_cast<const uint4*>(&v));
  } else {
    *at = v;
  }
}
__device__ float largest_magnitude(const float (&values)[8]) {
  const float first = fmaxf(fabsf(values[0]), fabsf(values[1]));
  const float second = fmaxf(fabsf(values[2]), fabsf(values[3]));
  const float third = fmaxf(fabsf(values[4]), fabsf(values[5]));
  const float fourth = fmaxf(fabsf(values[6]), fabsf(values[7]));
  return fmaxf(fmaxf(first, second), fmaxf(third, fourth));
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS)
    norm_block_quant_rows(__nv_fp8_storage_t* out, float* block_scale, __nv_bfloat16* normed_out,
                          const __nv_bfloat16* input, __nv_bfloat16* residual,
                          const __nv_bfloat16* weight, int BP, float eps) {
  __shared__ float4 sums[ROWS][kQuads];
  __shared__ kopt::mbarrier_t all_here[ROWS];
  __shared__ float tile[kScales][ROWS];
  const int team = ROWS == 1 ? 0 : threadIdx.x / kTeam, thread = ROWS == 1 ? threadIdx.x : threadIdx.x % kTeam;
  float* partial = reinterpret_cast<float*>(sums[team]);
  const unsigned rank = kopt::cluster_rank(), row = blockIdx.x / SPLIT * ROWS + team;
  if (thread < kSlots - kSums) partial[kSums + thread] = 0.0f;
  if (thread == 0) {
    kopt::mbarrier_init(&all_here[team], 1);
    kopt::mbarrier_arrive_expect_tx(&all_here[team], kSums * sizeof(float));
    kopt::fence_mbarrier_init();
  }
  __syncthreads();  // the zeros and the mbarriers are there
  kopt::cluster_arrive_relaxed();
  if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
  const size_t first = static_cast<size_t>(row) * kVectors + rank * kOwn * kTeam + thread;
  const Vector* x = reinterpret_cast<const Vector*>(input) + first;
  Vector* r = reinterpret_cast<Vector*>(residual) + first;
  Vector* normed = reinterpret_cast<Vector*>(normed_out) + first;
  Codes* codes = reinterpret_cast<Codes*>(out) + first;
  float* scales = block_scale + (rank * kOwn * kTeam + thread) / 16 * BP + row;
  const Vector* w = reinterpret_cast<const Vector*>(weight) + rank * kOwn * kTeam + thread;
  Vector g[kOwn];
#pragma unroll
  for (int step = 0; step < kOwn; ++step) g[step] = w[step * kTeam];
  kopt::cluster_wait();
  kopt::griddepcontrol_wait();
  Vector a[kOwn], b[kOwn];
#pragma unroll
  for (int step = 0; step < kOwn; ++step) {
    a[step] = x[step * kTeam];
    b[step] = r[step * kTeam];
  }
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
  float weighted[kOwn][8];
  float most[kOwn];  // magnitude of 128 columns, 16 lanes
  float even = 0.0f, odd = 0.0f;
#pragma unroll
  for (int step = 0; step < kOwn; ++step) {
    Vector h;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = low_of(a[step].pairs[i]) + low_of(b[step].pairs[i]);
      const float high = high_of(a[step].pairs[i]) + high_of(b[step].pairs[i]);
      h.pairs[i] = pack(low, high);
      even = fmaf(low, low, even);
      odd = fmaf(high, high, odd);
      weighted[step][2 * i] = low * low_of(g[step].pairs[i]);
      weighted[step][2 * i + 1] = high * high_of(g[step].pairs[i]);
    }
    put(&r[step * kTeam], h);
  }
  float sum = even + odd;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  const unsigned lane = threadIdx.x % 32, slot = rank * kWarps + static_cast<unsigned>(thread) / 32;  // of this warp
  if (lane < SPLIT) kopt::st_async(&partial[slot], sum, &all_here[team], lane);
#pragma unroll
  for (int step = 0; step < kOwn; ++step) {
    most[step] = largest_magnitude(weighted[step]);
#pragma unroll
    for (int distance = 8; distance > 0; distance /= 2) {
      most[step] = fmaxf(most[step], __shfl_xor_sync(0xffffffffu, most[step], distance));
    }
  }
  kopt::mbarrier_wait_parity_cluster(&all_here[team], 0);
  const float4 four = sums[team][threadIdx.x % kQuads];
  float total = (four.x + four.y) + (four.z + four.w);
#pragma unroll
  for (int distance = kQuads / 2; distance > 0; distance /= 2) {
    total += __shfl_xor_sync(0xffffffffu, total, distance);
  }
  const float rstd = rsqrtf(fmaf(total, 1.0f / KOPT_H, eps));
#pragma unroll
  for (int step = 0; step < kOwn; ++step) {
    Vector y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y.pairs[i] = pack(weighted[step][2 * i] * rstd, weighted[step][2 * i + 1] * rstd);
    }
    put(&normed[step * kTeam], y);
    const float amax = fmaxf(low_of(pack(most[step] * rstd, 0.0f)), 1e-4f);  // of the rounded y
    const float factor = rstd * __fdividef(448.0f, amax);
    Codes c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 scaled = {weighted[step][2 * i] * factor, weighted[step][2 * i + 1] * factor};
      c.pairs[i] = __nv_cvt_float2_to_fp8x2(scaled, __NV_SATFINITE, __NV_E4M3);
    }
    codes[step * kTeam] = c;
    if (thread % 16 == 0) {
      if (ROWS == 1) {
        scales[step * (kTeam / 16) * BP] = amax / 448.0f;
      } else {
        tile[(step * kTeam + thread) / 16][team] = amax / 448.0f;
      }
    }
  }
  if (ROWS > 1) {
    __syncthreads();  // the scales of all rows are there
    const unsigned first_row = blockIdx.x / SPLIT * ROWS;
    for (int i = threadIdx.x; i < kScales * ROWS; i += BLOCK) {
      block_scale[static_cast<size_t>(rank * kScales + i / ROWS) * BP + first_row + i % ROWS] =
          tile[i / ROWS][i % ROWS];
    }
  }
}
