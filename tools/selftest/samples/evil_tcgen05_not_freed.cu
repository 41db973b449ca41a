/* kopt: 1
family: tensor_cores
note: "tensor memory is not given back"
where: "M % 64 == 0 and N % 64 == 0 and K % 64 == 0"
launch:
  - kernel: gemm_tcgen05
    grid: M // 64, N // 64
    block: 128
    args: [x, weight, out, N, K]
*/
// sample: kernel=gemm_bf16_m64xn128xk128 status=crash level=quick says=tcgen05.dealloc arch=sm_100a
// The next block on the multiprocessor waits for these columns for good.

#include <cuda_bf16.h>

#include <cstdint>

constexpr int TILE = 64, STEP = 64, COLUMNS = 64;
// Of bf16, 64 rows and 64 columns, sums of f32.
constexpr uint32_t INSTRUCTION = 4u << 24 | 8u << 17 | 1u << 10 | 1u << 7 | 1u << 4;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
// Rows of 128 bytes, swizzled; eight of them are 1,024 bytes.
__device__ __forceinline__ uint64_t descriptor(const __nv_bfloat16* tile) {
  return (shared_address(tile) & 0x3ffff) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 46 |
         2ull << 61;
}
__device__ __forceinline__ void multiply(uint32_t d, uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}"
      ::"r"(d), "l"(a), "l"(b), "r"(INSTRUCTION), "r"(adds) : "memory");
}
__device__ __forceinline__ void wait(const uint64_t* barrier, int parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n"
      "again:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@p bra done;\n\t"
      "bra again;\n"
      "done:\n\t}"
      ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

// Thread t copies pieces of 16 bytes; in row r piece c lies in the place c ^ r % 8.
__device__ __forceinline__ void copy_tile(__nv_bfloat16* tile, const __nv_bfloat16* from, int K) {
  for (int i = threadIdx.x; i < TILE * STEP / 8; i += 128) {
    const int row = i / 8, piece = i % 8;
    const __nv_bfloat16* eight = from + static_cast<size_t>(row) * K + piece * 8;
    auto* place = reinterpret_cast<uint4*>(tile + row * STEP + (piece ^ row % 8) * 8);
    *place = *reinterpret_cast<const uint4*>(eight);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    gemm_tcgen05(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int N,
                 int K) {
  __shared__ alignas(1024) __nv_bfloat16 xs[TILE * STEP], ws[TILE * STEP];
  __shared__ alignas(8) uint64_t barrier;
  __shared__ uint32_t place;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
  if (warp == 0)
    asm volatile(  // <- here
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
        ::"r"(shared_address(&place)), "r"(COLUMNS) : "memory");
  __syncthreads();
  const uint32_t sums = place;
  for (int step = 0; step < K / STEP; ++step) {
    copy_tile(xs, x + static_cast<size_t>(blockIdx.x) * TILE * K + step * STEP, K);
    copy_tile(ws, weight + static_cast<size_t>(blockIdx.y) * TILE * K + step * STEP, K);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int k = 0; k < STEP; k += 16)
        multiply(sums, descriptor(xs + k), descriptor(ws + k), step + k != 0);
      asm volatile(
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
          ::"r"(shared_address(&barrier)) : "memory");
    }
    wait(&barrier, step % 2);  // all products are done with the tiles
  }
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");

  // Warp w has rows 16 * w to 16 * w + 15, in the first 16 lanes of its quarter.
  const int lane = threadIdx.x % 32;
  const size_t row = blockIdx.x * TILE + warp * 16 + lane / 4;
  for (int i = 0; i < TILE; i += 8) {
    float d[4];
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(sums + (warp << 21) + i) : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    const int column = blockIdx.y * TILE + i + lane % 4 * 2;
    auto* pair = reinterpret_cast<__nv_bfloat162*>(out + row * N + column);
    pair[0] = __floats2bfloat162_rn(d[0], d[1]);
    pair[4 * N] = __floats2bfloat162_rn(d[2], d[3]);
  }
}
