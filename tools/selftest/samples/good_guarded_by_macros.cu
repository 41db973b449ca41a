/* kopt: 1
family: other
note: "the configuration section of a library: defaults, guards, architectures, a debug level"
where: "B <= 8 and H % 2 == 0"
launch:
  - kernel: silu_and_mul_guarded
    grid: ceil_div(H // 2, MYLIB_THREADS), B
    block: MYLIB_THREADS
    args: [input, out, H]
tune: {MYLIB_THREADS: [128, 256]}
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread t of block (x, b) owns the pair of columns MYLIB_THREADS x + t of row b.

#define MYLIB_WARP 32
#ifdef MYLIB_ENABLE_FP8
#include <cuda_fp8.h>
#endif
#ifndef MYLIB_NO_BF16
#include <cuda_bf16.h>
#endif

#ifndef MYLIB_THREADS
#define MYLIB_THREADS 256
#endif
#ifndef MYLIB_UNROLL
#define MYLIB_UNROLL 4
#endif
#if defined(MYLIB_DEBUG) && MYLIB_DEBUG > 1
#error "there is no debug build"
#endif
#ifdef __CUDACC__
#define MYLIB_HOST_DEVICE __host__ __device__ __forceinline__
#define MYLIB_PRAGMA_UNROLL _Pragma("unroll")
#else
#define MYLIB_HOST_DEVICE inline
#define MYLIB_PRAGMA_UNROLL
#endif
#if defined(_MSC_VER)
#define MYLIB_RESTRICT __restrict
#else
#define MYLIB_RESTRICT __restrict__
#endif
#if CUDART_VERSION >= 12000 && __cplusplus >= 201703L
#define MYLIB_IF_CONSTEXPR if constexpr
#else
#define MYLIB_IF_CONSTEXPR if
#endif

MYLIB_HOST_DEVICE float silu(float x) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 800)
  return x / (1.0f + __expf(-x));
#else
  return x / (1.0f + expf(-x));
#endif
}

extern "C" __global__ void __launch_bounds__(MYLIB_THREADS)
    silu_and_mul_guarded(const __nv_bfloat16* MYLIB_RESTRICT input,
                         __nv_bfloat16* MYLIB_RESTRICT out, int H) {
  static_assert(MYLIB_THREADS % MYLIB_WARP == 0 && MYLIB_UNROLL == 4);
  const int pair = blockIdx.x * MYLIB_THREADS + threadIdx.x;
  if (pair >= H / 2) return;
  const auto* row = reinterpret_cast<const __nv_bfloat162*>(input) + size_t(blockIdx.y) * H;
  const float2 gate = __bfloat1622float2(row[pair]), up = __bfloat1622float2(row[H / 2 + pair]);
  float2 product;
  MYLIB_IF_CONSTEXPR(__CUDA_ARCH__ >= 700) {
    product = make_float2(silu(gate.x) * up.x, silu(gate.y) * up.y);
  }
  reinterpret_cast<__nv_bfloat162*>(out)[size_t(blockIdx.y) * (H / 2) + pair] =
      __float22bfloat162_rn(product);
}
