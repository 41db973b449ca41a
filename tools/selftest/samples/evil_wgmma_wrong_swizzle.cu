/* kopt: 1
family: [tensor_cores, async_pipeline]
note: "the descriptor names another swizzle than the tensor map"
where: "M % 64 == 0 and N % 64 == 0 and K % 32 == 0"
tensor_maps:
  x_tiles: {tensor: x, box: "64, 32", swizzle: 64}
  weight_tiles: {tensor: weight, box: "64, 32", swizzle: 64}
launch:
  - kernel: gemm_wgmma
    grid: M // 64, N // 64
    block: 160
    args: [x_tiles, weight_tiles, out, N, K]
*/
// sample: kernel=gemm_bf16_small_m64xn128xk128 status=incorrect level=quick arch=sm_90a
// TMA swizzles rows of 64 bytes; the products read them as if they were rows of 32 bytes.

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

constexpr int TILE = 64, STEP = 32, STAGES = 2;
constexpr uint32_t TILE_BYTES = TILE * STEP * 2;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void make_barrier(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}
__device__ __forceinline__ void expect_bytes(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n"
      "WAIT:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@p bra DONE;\n\t"
      "bra WAIT;\n"
      "DONE:\n\t}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void load_tile(void* tile, const CUtensorMap* map, uint64_t* barrier,
                                          int k, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(tile)),
      "l"(map), "r"(shared_address(barrier)), "r"(k), "r"(row)
      : "memory");
}

// Rows of 64 bytes, swizzled; eight of them are 512 bytes.
__device__ __forceinline__ uint64_t descriptor(const __nv_bfloat16* tile) {
  const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4;
  return address | 1ull << 16 | (512ull >> 4) << 32 | 3ull << 62;  // 2: rows of 64 bytes
}
__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.ne.b32 p, %34, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;\n\t}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
        "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),
        "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}

extern "C" __global__ void __launch_bounds__(160)
    gemm_wgmma(const __grid_constant__ CUtensorMap x_tiles,
               const __grid_constant__ CUtensorMap weight_tiles, __nv_bfloat16* out, int N,
               int K) {
  __shared__ alignas(1024) __nv_bfloat16 xs[STAGES][TILE * STEP], ws[STAGES][TILE * STEP];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      make_barrier(&full[stage], 1);
      make_barrier(&empty[stage], 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int steps = K / STEP;

  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int step = 0; step < steps; ++step) {
      const int stage = step % STAGES;
      wait(&empty[stage], (step / STAGES & 1) ^ 1);
      expect_bytes(&full[stage], 2 * TILE_BYTES);
      load_tile(xs[stage], &x_tiles, &full[stage], step * STEP, blockIdx.x * TILE);
      load_tile(ws[stage], &weight_tiles, &full[stage], step * STEP, blockIdx.y * TILE);
    }
    return;
  }

  float d[32];
  for (int step = 0; step < steps; ++step) {
    const int stage = step % STAGES;
    wait(&full[stage], step / STAGES & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < STEP; k += 16)
      multiply(d, descriptor(xs[stage] + k), descriptor(ws[stage] + k), step + k != 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (threadIdx.x == 0 && step > 0) arrive(&empty[(step - 1) % STAGES]);
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t row = blockIdx.x * TILE + warp * 16 + lane / 4;
  for (int i = 0; i < 32; i += 4) {
    const int column = blockIdx.y * TILE + i * 2 + lane % 4 * 2;
    auto* place = reinterpret_cast<__nv_bfloat162*>(out + row * N + column);
    place[0] = __floats2bfloat162_rn(d[i], d[i + 1]);
    place[4 * N] = __floats2bfloat162_rn(d[i + 2], d[i + 3]);
  }
}
