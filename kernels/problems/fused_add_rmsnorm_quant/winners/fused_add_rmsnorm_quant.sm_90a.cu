/* kopt: 1
family: [clusters, register_caching, algebra]
note: >-
  Up to 16 rows the blocks of a cluster share a row, so that few rows use more SMs' paths to L2: each warp sends its
  partial sum to every block by st.async, which an mbarrier counts, without fence or cluster barrier between loads and
  stores. Beyond, a block has a row of its own. The row stays in registers; the product with the weight comes before
  the sums are there.
where: "H % 8192 == 0"
specialize: [H]
tune: {BLOCK: [256, 512], SPLIT: [4, 1], TRIGGER: [0, 1], HINT: [0, 1], MIN_BLOCKS: [1, 2, 4]}
tune_where: ["H % (BLOCK * 8 * SPLIT) == 0", "BLOCK * MIN_BLOCKS <= 2048"]
variants:
  - when: "B <= 16"
    set: {BLOCK: 256, SPLIT: 4, TRIGGER: 0, HINT: 0, MIN_BLOCKS: 1}
    launch:
      - kernel: norm_quant_rows
        grid: B * SPLIT
        block: BLOCK
        cluster: SPLIT
        pdl: true
        args: [out, input, residual, weight, scale, eps]
  - when: "B <= 512"
    set: {BLOCK: 512, SPLIT: 1, TRIGGER: 1, HINT: 1, MIN_BLOCKS: 2}
    launch:
      - kernel: norm_quant_rows
        grid: B * SPLIT
        block: BLOCK
        cluster: SPLIT
        pdl: true
        args: [out, input, residual, weight, scale, eps]
  - when: "true"
    set: {BLOCK: 256, SPLIT: 1, TRIGGER: 1, HINT: 0, MIN_BLOCKS: 4}
    launch:
      - kernel: norm_quant_rows
        grid: B * SPLIT
        block: BLOCK
        cluster: SPLIT
        pdl: true
        args: [out, input, residual, weight, scale, eps]
*/
// Mapping: a cluster of SPLIT blocks owns a row (SPLIT 1: a block, without cluster and mbarrier); thread t of block k
// owns the 8 columns from 8 (k kOwn BLOCK + t) on, kOwn times, each 8 BLOCK columns further. Shared memory: the partial
// sums of all warps of the row.
// Order: mbarrier and weights before the wait; loads of x and r -> their sum, stored at once -> squares -> partial sums
// to all blocks -> codes. A thread reads all partial sums as one 16 byte word and a few shuffles.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <kopt/cluster_exchange.cuh>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

constexpr int kVectors = KOPT_H / 8;
constexpr int kOwn = kVectors / (BLOCK * SPLIT);
static_assert(kVectors % (BLOCK * SPLIT) == 0, "every thread has the same number of vectors");
constexpr int kWarps = BLOCK / 32;
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

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS)
    norm_quant_rows(__nv_fp8_storage_t* out, const __nv_bfloat16* input, __nv_bfloat16* residual,
                    const __nv_bfloat16* weight, const float* scale, float eps) {
  __shared__ float4 sums[kQuads];
  __shared__ kopt::mbarrier_t all_here;
  float* partial = reinterpret_cast<float*>(sums);
  const unsigned rank = SPLIT == 1 ? 0 : kopt::cluster_rank(), row = blockIdx.x / SPLIT;
  const int thread = threadIdx.x;
  if (thread < kSlots - kSums) partial[kSums + thread] = 0.0f;
  if (SPLIT > 1) {
    if (threadIdx.x == 0) {
      kopt::mbarrier_init(&all_here, 1);
      kopt::mbarrier_arrive_expect_tx(&all_here, kSums * sizeof(float));
      kopt::fence_mbarrier_init();
    }
    __syncthreads();  // the zeros and the mbarrier are there
    kopt::cluster_arrive_relaxed();
  }
  if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
  const size_t first = static_cast<size_t>(row) * kVectors + rank * kOwn * BLOCK + threadIdx.x;
  const Vector* x = reinterpret_cast<const Vector*>(input) + first;
  Vector* r = reinterpret_cast<Vector*>(residual) + first;
  Codes* codes = reinterpret_cast<Codes*>(out) + first;
  const Vector* w = reinterpret_cast<const Vector*>(weight) + rank * kOwn * BLOCK + threadIdx.x;
  Vector g[kOwn];
#pragma unroll
  for (int step = 0; step < kOwn; ++step) g[step] = w[step * BLOCK];
  const float divisor = *scale;
  if (SPLIT > 1) kopt::cluster_wait();
  kopt::griddepcontrol_wait();
  Vector a[kOwn], b[kOwn];
#pragma unroll
  for (int step = 0; step < kOwn; ++step) {
    a[step] = x[step * BLOCK];
    b[step] = r[step * BLOCK];
  }
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
  float weighted[kOwn][8];
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
    put(&r[step * BLOCK], h);
  }
  float sum = even + odd;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  const unsigned lane = threadIdx.x % 32, slot = rank * kWarps + threadIdx.x / 32;  // of this warp
  if (SPLIT > 1) {
    if (lane < SPLIT) kopt::st_async(&partial[slot], sum, &all_here, lane);
  } else if (lane == 0) {
    partial[slot] = sum;
  }
  if (SPLIT > 1) {
    kopt::mbarrier_wait_parity_cluster(&all_here, 0);
  } else {
    __syncthreads();  // all warps have stored their sums before any thread reads them
  }
  const float4 four = sums[threadIdx.x % kQuads];
  float total = (four.x + four.y) + (four.z + four.w);
#pragma unroll
  for (int distance = kQuads / 2; distance > 0; distance /= 2) {
    total += __shfl_xor_sync(0xffffffffu, total, distance);
  }
  const float rstd = rsqrtf(fmaf(total, 1.0f / KOPT_H, eps));
  const float factor = __fdividef(rstd, divisor);
#pragma unroll
  for (int step = 0; step < kOwn; ++step) {
    Codes c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 y = {weighted[step][2 * i] * factor, weighted[step][2 * i + 1] * factor};
      c.pairs[i] = __nv_cvt_float2_to_fp8x2(y, __NV_SATFINITE, __NV_E4M3);
    }
    codes[step * BLOCK] = c;
  }
}
