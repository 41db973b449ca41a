/* kopt: 1
family: tensor_cores
note: "tiles that threads store, read by wgmma with no fence of the async proxy"
where: "M % 64 == 0 and N % 64 == 0 and K % 64 == 0"
launch:
  - kernel: gemm_wgmma
    grid: M // 64, N // 64
    block: 128
    args: [x, weight, out, N, K]
*/
// sample: kernel=gemm_bf16_small_m64xn128xk128 status=data_race level=quick says=fence_proxy_async arch=sm_90a
// A barrier orders the stores before what threads load, but wgmma reads through the async proxy.

#include <cuda_bf16.h>

#include <cstdint>

constexpr int TILE = 64, STEP = 64;

// Rows of 128 bytes, swizzled; eight of them are 1,024 bytes.
__device__ __forceinline__ uint64_t descriptor(const __nv_bfloat16* tile) {
  uint64_t address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(tile));
  return (address & 0x3ffff) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile(  // <- here
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
    gemm_wgmma(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int N,
               int K) {
  __shared__ alignas(1024) __nv_bfloat16 xs[TILE * STEP], ws[TILE * STEP];
  float d[32];
  for (int step = 0; step < K / STEP; ++step) {
    copy_tile(xs, x + static_cast<size_t>(blockIdx.x) * TILE * K + step * STEP, K);
    copy_tile(ws, weight + static_cast<size_t>(blockIdx.y) * TILE * K + step * STEP, K);
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < STEP; k += 16)
      multiply(d, descriptor(xs + k), descriptor(ws + k), step + k != 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();  // all are done with the tiles
  }

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t row = blockIdx.x * TILE + warp * 16 + lane / 4;
  for (int i = 0; i < 32; i += 4) {
    const int column = blockIdx.y * TILE + i * 2 + lane % 4 * 2;
    auto* place = reinterpret_cast<__nv_bfloat162*>(out + row * N + column);
    place[0] = __floats2bfloat162_rn(d[i], d[i + 1]);
    place[4 * N] = __floats2bfloat162_rn(d[i + 2], d[i + 3]);
  }
}
