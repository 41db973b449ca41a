// Kernels that use as many instructions as this field does, for the comparison of sass_reader.py
// with nvdisasm. They are compiled and read, never run; what they compute has no meaning.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cstdint>

#define KERNEL extern "C" __global__ void
#define T threadIdx.x

KERNEL float_math(float* o, const float* i, int n) {
  float a = i[T], b = i[T + 1];
  o[T] = __expf(a) + __logf(b) + __sinf(a) * __cosf(b) + tanhf(a) + sqrtf(a) + rsqrtf(b) + a / b +
         fmodf(a, 3.0f) + erff(a) + floorf(b) + rintf(a) + fminf(a, b) + copysignf(a, b) +
         exp2f(a) + log2f(b) + ldexpf(a, n) + (isnan(b) ? 1.0f : 0.0f);
}

KERNEL double_math(double* o, const double* i, int n) {
  o[T] = i[T] / i[T + 1] + sqrt(i[T]) + fma(i[T], i[T + 1], i[T + 3]) + n + (float)i[T] + (int)i[T];
}

KERNEL integers(int* o, const int* i, int n, unsigned m, long long q, unsigned long long u) {
  int a = i[T];
  o[T] = a / n + a % n + (a << n) + (a >> n) + __popc(a) + __clz(a) + __brev(a) + __ffs(a) +
         min(a, n) + abs(a) + __byte_perm(a, n, m) + __funnelshift_l(a, n, m) + __mulhi(a, n) +
         (int)(q / a) + (int)(q * u) + (int)(u >> n) + __dp4a(a, n, 0) + __sad(a, n, m) +
         ((a & n) | (m ^ i[T + 1])) + __vadd4(a, n) + __viaddmax_s32(a, n, m);
}

KERNEL atomics(float* f, int* p, unsigned* u, unsigned long long* q, __half2* h,
               __nv_bfloat162* b, double* d) {
  __shared__ int s[64];
  s[T] = 0;
  __syncthreads();
  atomicAdd(f, 1.0f), atomicAdd(d, 1.0), atomicAdd(h, h[1]), atomicAdd(b, b[1]);
  p[1] = atomicAdd(p, 1), atomicMax(p + 2, T), atomicMin(u, T), atomicAnd(u + 1, T);
  u[5] = atomicExch(u + 4, T), u[7] = atomicCAS(u + 6, T, 3), atomicInc(u + 8, 7);
  q[1] = atomicAdd(q, 3ull), q[2] = atomicCAS(q + 3, 4ull, 5ull), atomicMax(q + 8, 5ull);
  atomicAdd(s + (T & 31), 1), p[8] = atomicExch(s, 3), p[9] = atomicCAS(s + 1, 2, 3);
  __syncthreads();
  p[T] = s[T];
}

KERNEL warp(int* o, unsigned m) {
  int equal;
  o[T] = __shfl_sync(m, T, 3) + __shfl_up_sync(m, T, 1) + __shfl_down_sync(m, T, 1) +
         __shfl_xor_sync(m, T, 1, 8) + __any_sync(m, T > 3) + __ballot_sync(m, T > 5) +
         __match_any_sync(m, T) + __match_all_sync(m, T, &equal) + __reduce_add_sync(m, T) +
         __activemask() + __syncthreads_count(T > 5) + __syncthreads_or(T > 8) + equal;
  __syncwarp(m);
  __threadfence(), __threadfence_block(), __threadfence_system();
}

KERNEL narrow(__half2* o, const __half2* i, __nv_bfloat162* b, float* f, unsigned char* c) {
  o[T] = __hfma2(i[T], i[T + 1], i[T + 2]) + __hmax2(i[T], i[T + 5]) + h2exp(i[T]) +
         __float22half2_rn(make_float2(f[T], f[T + 1]));
  b[T] = __hfma2(b[T + 1], b[T + 2], b[T + 3]) + __floats2bfloat162_rn(f[T], f[T + 1]);
  c[T] = __nv_cvt_float_to_fp8(f[T], __NV_SATFINITE, __NV_E4M3) +
         __nv_cvt_float2_to_fp4x2(make_float2(f[T], f[T + 2]), __NV_E2M1, cudaRoundNearest);
  __half2_raw pair = __nv_cvt_fp4x2_to_halfraw2(c[T + 7], __NV_E2M1);
  f[T] = __low2float(i[T]) + __half2float(__half2(pair).x) + (i[T].x > i[T].y ? 1.0f : 2.0f);
}

KERNEL conversions(unsigned* o, const float* f, const unsigned short* u) {
  __half2_raw half = {u[T], u[T + 1]};
  o[0] = __nv_cvt_float2_to_fp8x2(make_float2(f[T], f[T + 1]), __NV_SATFINITE, __NV_E5M2);
  o[1] = __nv_cvt_halfraw2_to_fp8x2(half, __NV_SATFINITE, __NV_E4M3);
  o[2] = __nv_cvt_halfraw2_to_fp8x2(half, __NV_SATFINITE, __NV_E5M2);
  half = __nv_cvt_fp8x2_to_halfraw2(u[T + 8], __NV_E4M3), o[3] = half.x | half.y << 16;
  half = __nv_cvt_fp8x2_to_halfraw2(u[T + 9], __NV_E5M2), o[4] = half.x | half.y << 16;
  asm volatile("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(o[5]) : "f"(f[T + 2]), "f"(f[T + 3]));
  asm volatile("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(o[6]) : "f"(f[T + 4]), "f"(f[T + 5]));
  asm volatile("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(o[7]) : "f"(f[T]), "f"(f[T + 6]));
}

KERNEL widths(float4* o, const float4* i, double2* o2, unsigned char* c, signed char* s,
              short* h, unsigned short* u, long long* l) {
  o[T] = __ldg(i + T), o[T + 1] = __ldcs(i + T + 3), o[T + 2] = __ldcg(i + T + 5);
  __stcs(o + T + 9, i[T]), __stwt(o + T + 8, i[T + 2]);
  o2[T] = o2[T + 1], c[T] = c[T + 1], s[T] = s[T + 1] / 3, h[T] = h[T + 1] * s[T];
  u[T] = u[T + 1], l[T] = l[T + 1];
  *(int*)l[T + 2] = *(int*)l[T + 3];
}

KERNEL shared_and_local(float* o, float* p) {
  extern __shared__ float dynamic[];
  __shared__ float4 wide[32];
  __shared__ char bytes[32];
  float local[64];
  wide[T] = ((float4*)o)[T], bytes[T] = T, dynamic[T] = o[T];
  __syncthreads();
  o[T] = wide[T ^ 1].x + wide[T ^ 2].y + bytes[T ^ 1] + dynamic[T ^ 9];
  for (int k = 0; k < 64; k++) local[k] = o[k * T];
  o[T] = local[(int)p[T] & 63];
}

KERNEL copies(float* o, const float* i, unsigned bytes) {
  __shared__ __align__(128) float s[1024];
  __shared__ __align__(8) uint64_t barrier;
  unsigned b = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(s), ready;
  __pipeline_memcpy_async(s + T * 4, i + T * 4, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(b));
  asm volatile("fence.proxy.async;");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          to),
      "l"(i), "r"(bytes), "r"(b));
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0,1,0,p; }"
      : "=r"(ready)
      : "r"(b));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(o), "r"(to),
               "r"(bytes));
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
  o[T] = s[T ^ 3] + ready;
}

KERNEL matrices(const __half* a, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(left, a, 16), load_matrix_sync(right, a + 256, 16);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}

KERNEL __cluster_dims__(2, 1, 1) cluster(unsigned* o) {
  __shared__ unsigned s[32];
  auto group = cooperative_groups::this_cluster();
  s[T] = T;
  group.sync();
  o[T] = group.map_shared_rank(s, group.block_rank() ^ 1)[T];
  group.sync();
}

KERNEL dependent(float4* o, const float4* i) {
  cudaGridDependencySynchronize();
  float4 v = i[T];
  asm volatile("bar.sync 3, 64; bar.arrive 4, 64;");
  cudaTriggerProgrammaticLaunchCompletion();
  o[T] = v;
}

KERNEL branches(int* o, int n) {
  switch (o[T]) {
    case 0: o[1] = 3; break;
    case 1: o[2] = n; break;
    case 2: o[4] = 7 * n; break;
    case 3: o[9] = n / 3; break;
    default: o[0] = 1;
  }
  for (int x = o[5]; x > n; x = x / 3 + o[x]) {
    if (x == 7) break;
    for (int k = 0; k < x; k++) o[k] += x;
  }
}

#if __CUDA_ARCH__ >= 1000
KERNEL blackwell(unsigned* o, const unsigned* i, float2* f) {
  unsigned v[8];
  asm volatile("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]),
                 "=r"(v[6]), "=r"(v[7])
               : "l"(i + T * 8));
  asm volatile("st.global.v8.b32 [%8], {%0,%1,%2,%3,%4,%5,%6,%7};" ::"r"(v[0]), "r"(v[1]),
               "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]),
               "l"(o + T * 8));
  f[T] = __ffma2_rn(f[T + 1], f[T + 2], __fadd2_rn(f[T + 3], f[T + 4]));
}

KERNEL blackwell_conversions(unsigned* o, const float2* f, const unsigned char* c) {
  o[0] = __nv_cvt_float2_to_fp4x2(f[T], __NV_E2M1, cudaRoundNearest);
  o[1] = __nv_cvt_float2_to_fp6x2(f[T + 1], __NV_E2M3, cudaRoundNearest);
  o[2] = __nv_cvt_float2_to_fp6x2(f[T + 2], __NV_E3M2, cudaRoundNearest);
  __half2_raw half = __nv_cvt_fp4x2_to_halfraw2(c[T], __NV_E2M1);
  o[3] = half.x | half.y << 16;
  half = __nv_cvt_fp6x2_to_halfraw2(c[T + 1], __NV_E2M3), o[4] = half.x | half.y << 16;
  half = __nv_cvt_fp6x2_to_halfraw2(c[T + 2], __NV_E3M2), o[5] = half.x | half.y << 16;
  unsigned short scales;
  asm volatile("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(scales) : "f"(f[T].x), "f"(f[T].y));
  asm volatile("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(o[6]) : "h"(scales));
  o[7] = scales;
}
#endif

__constant__ float4 table[33];

KERNEL constants(float4* o, int n) {
  const int local[16] = {1, 7, 3, 9, 2, 8, 4, 6, 5, 0, 33, 12, 15, 18, 19, 77};
  o[T] = table[n];
  o[T + 1] = table[2];
  o[T + 2].x = local[n & 15];
}

// What the reader leaves to nvdisasm.
__device__ int counter[4];
KERNEL left_state(int* o) { o[0] = atomicAdd(counter, 1); }
KERNEL left_table(float* o, int n) {
  static const float values[8] = {1.0f, 2.0f, 3.5f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f};
  o[0] = values[n & 7];
}
KERNEL left_clock(long long* o) { o[0] = clock64(); }
KERNEL left_sleep() { __nanosleep(100); }
KERNEL left_trap(int* o) { if (o[0]) __trap(); }
