// Kernels by what they ask of the caches: `keeps_*` cache policies that keep lines, `fetches_*`
// prefetches, `early_*` prefetches before the wait for the launch before, `plain_*` nothing that
// could make a later call, or the wait, worth more than the kernel is.
#include <cstdint>
#include <cuda.h>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

#define KERNEL(name) extern "C" __global__ void name(const float4* x, float4* y, uint64_t given)
#define T threadIdx.x

__device__ float4 load_with(const float4* x, uint64_t policy) {
  float4 v;
  asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(x), "l"(policy));
  return v;
}

#define POLICY(name, kind)                                                        \
  KERNEL(name) {                                                                  \
    uint64_t policy;                                                              \
    asm volatile("createpolicy.fractional." kind ".b64 %0, 1.0;" : "=l"(policy)); \
    y[T] = load_with(x + T, policy);                                              \
  }
POLICY(keeps_made, "L2::evict_last")
POLICY(keeps_half, "L2::evict_last.L2::evict_unchanged")
POLICY(plain_first_out, "L2::evict_first")
POLICY(plain_normal, "L2::evict_normal")

KERNEL(keeps_constant) { y[T] = load_with(x + T, 0x14F0000000000000ull); }
KERNEL(keeps_given) { y[T] = load_with(x + T, given); }
KERNEL(keeps_first_level) {
  float v;
  asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(v) : "l"(x + T));
  y[T].x = v;
}
KERNEL(keeps_stored) {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(y + T), "f"(1.0f), "l"(policy));
}
KERNEL(keeps_and_fetches) {
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x + T));
  y[T] = x[T + 1];
}
KERNEL(fetches_line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + 4096));
  y[T] = x[T];
}
KERNEL(fetches_behind_wait) {
  kopt::griddepcontrol_wait();
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + 4096));
  y[T] = x[T];
}
KERNEL(early_line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + T));
  kopt::griddepcontrol_wait();
  y[T] = x[T];
}
KERNEL(early_bulk) {
  if (T == 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], 1024;" ::"l"(x));
  kopt::griddepcontrol_wait();
  y[T] = x[T];
}
KERNEL(early_first_level) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(x + T));
  kopt::griddepcontrol_wait();
  y[T] = x[T];
}
extern "C" __global__ void early_tile(const __grid_constant__ CUtensorMap map, float4* y) {
  asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global [%0, {%1}];" ::"l"(&map), "r"(0));
  kopt::griddepcontrol_wait();
  y[T] = float4{};
}
KERNEL(early_and_fetches_later) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + T));
  kopt::griddepcontrol_wait();
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + 4096));
  y[T] = x[T];
}
KERNEL(plain_wait) {
  kopt::griddepcontrol_wait();
  y[T] = x[T];
}
KERNEL(fetches_bulk) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], 1024;" ::"l"(x + 4096));
  y[T] = x[T];
}

__device__ void copy_tile(const CUtensorMap* map, uint64_t policy, bool hint, float4* y) {
  __shared__ alignas(128) float4 tile[32];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const uint32_t done = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (hint) {
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%2}], [%3], %4;" ::"r"(to),
        "l"(map), "r"(0), "r"(done), "l"(policy));
  } else {
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2}], [%3];" ::"r"(to),
        "l"(map), "r"(0), "r"(done));
  }
  y[T] = tile[T];
}
extern "C" __global__ void keeps_tile(const __grid_constant__ CUtensorMap map, float4* y) {
  copy_tile(&map, 0x14F0000000000000ull, true, y);
}
extern "C" __global__ void plain_first_out_tile(const __grid_constant__ CUtensorMap map, float4* y) {
  copy_tile(&map, 0x12F0000000000000ull, true, y);
}
extern "C" __global__ void plain_tile(const __grid_constant__ CUtensorMap map, float4* y) {
  copy_tile(&map, 0, false, y);
}

KERNEL(plain_streaming) {
  kopt::store_streaming_16(y + T, kopt::load_streaming_16(x + T));
  kopt::store_32(y + 64 + 2 * T, kopt::load_32(x + 64 + 2 * T));
}
KERNEL(plain_modes) {
  float4 v = __ldcs(x + T);
  const float4 w = __ldcg(x + T + 64), z = __ldg(x + T + 128);
  v.x += w.x + z.x;
  __stcs(y + T, v);
  atomicAdd(&y[T].y, 1.0f);
}
KERNEL(plain_wide_prefetch_size) {
  float v;
  asm volatile("ld.global.L2::256B.f32 %0, [%1];" : "=f"(v) : "l"(x + T));
  y[T].x = v;
}
KERNEL(plain_branches) {
  const float* f = reinterpret_cast<const float*>(x);
  float sum = 0;
  for (uint64_t i = T; i < given; i += blockDim.x) {
    if (f[i] > 1.0f) sum += f[i + 1]; else sum -= f[static_cast<int>(f[i])];
    __syncthreads();
    switch (static_cast<int>(sum)) {
      case 1: y[i].x = sum; break;
      case 2: y[i].y = f[3]; break;
      case 3: atomicAdd(&y[i].z, sum); break;
      case 4: y[i + 1].w = f[7] / sum; break;
      default: y[i + 2].w = f[9];
    }
  }
  y[T].x = sum;
}
