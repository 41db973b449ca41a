"""What kernels of wgmma are made of, as people write it: descriptors, barriers, TMA, products."""


def _registers(count: int, first: int = 0) -> str:
    return ", ".join(f"%{first + n}" for n in range(count))


def product(name: str, columns: int, left: int) -> str:
    """Return a function for m64nNk16 of bf16; `left`: how many registers A has, 0 in memory."""
    count = columns // 2
    a = f"{{{_registers(left, count)}}}" if left else f"%{count}"
    behind = count + max(left, 1)
    more = _registers(4, behind)
    turns = f"%{behind + 4}" if left else f"%{behind + 4}, %{behind + 5}"
    sums = ", ".join(f'"+f"(d[{n // 8}][{n % 8}])' for n in range(count))
    given = ", ".join(f'"r"(a[{n}])' for n in range(left)) if left else '"l"(a)'
    kinds = "int ScaleD, int ScaleA, int ScaleB, int TurnA, int TurnB"
    turned = '"n"(TurnB)' if left else '"n"(TurnA), "n"(TurnB)'
    of_a = "const uint32_t (&a)[4]" if left else "uint64_t a"
    return f"""
template <{kinds}>
__device__ __forceinline__ void {name}(float (&d)[{count // 8}][8], {of_a}, uint64_t b) {{
  asm volatile(
      "{{\\n"
      "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 "
      "{{{_registers(count)}}}, {a}, {more}, {turns};\\n"
      "}}\\n"
      : {sums}
      : {given}, "l"(b), "n"(int32_t(ScaleD)), "n"(int32_t(ScaleA)), "n"(int32_t(ScaleB)),
        {turned});
}}
"""


WORDS = """
#include <cuda.h>
#include <cuda_bf16.h>
#include <cstdint>
using bf16 = __nv_bfloat16;
__device__ static inline uint64_t matrix_descriptor_encode(uint64_t x) {
  return (x & 0x3FFFF) >> 0x4;
}
// Rows of 128 bytes, swizzled; `leading` counts where they lie along the lines.
__device__ uint64_t make_smem_desc(const bf16* ptr, uint64_t leading = 16) {
  uint32_t addr = static_cast<uint32_t>(__cvta_generic_to_shared(ptr));
  uint64_t desc = 0x0000000000000000;
  desc |= matrix_descriptor_encode((uint64_t)addr);
  desc |= matrix_descriptor_encode(leading) << 16;
  desc |= matrix_descriptor_encode((uint64_t)1024) << 32;
  desc |= 1llu << 62;
  return desc;
}
__device__ void warpgroup_arrive() { asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory"); }
__device__ void warpgroup_commit_batch() {
  asm volatile("wgmma.commit_group.sync.aligned;\\n" ::: "memory");
}
template <int N>
__device__ void warpgroup_wait() {
  static_assert(N >= 0 && N <= 7, "WGMMA wait: N must be in range [0, 7]");
  asm volatile("wgmma.wait_group.sync.aligned %0;\\n" ::"n"(N) : "memory");
}
__device__ static __forceinline__ void init_barrier(uint64_t* bar, int count) {
  uint32_t bar_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\\n" ::"r"(bar_ptr), "r"(count));
}
__device__ static __forceinline__ void expect_bytes(uint64_t* bar, uint32_t bytes) {
  uint32_t bar_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\\n"
               ::"r"(bar_ptr), "r"(bytes));
}
__device__ static __forceinline__ void wait(uint64_t* bar, int phase) {
  uint32_t mbar_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  asm volatile(
      "{\\n"
      ".reg .pred                P1;\\n"
      "LAB_WAIT:\\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\\n"
      "@P1                       bra.uni DONE;\\n"
      "bra.uni                   LAB_WAIT;\\n"
      "DONE:\\n"
      "}\\n" ::"r"(mbar_ptr), "r"(phase));
}
__device__ static __forceinline__ void arrive(uint64_t* bar, uint32_t count = 1) {
  uint32_t mbar_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;\\n"
               ::"r"(mbar_ptr), "r"(count) : "memory");
}
__device__ static __forceinline__ void load_async(bf16* dst, const CUtensorMap* map, uint64_t* bar,
                                                  int column, int row) {
  uint64_t tma_ptr = reinterpret_cast<uint64_t>(map);
  uint32_t mbar_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  uint32_t dst_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(dst));
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];"
      ::"r"(dst_ptr), "l"(tma_ptr), "r"(mbar_ptr), "r"(column), "r"(row) : "memory");
}
__device__ static __forceinline__ void store_async(const CUtensorMap* map, const bf16* src,
                                                   int column, int row) {
  uint64_t tma_ptr = reinterpret_cast<uint64_t>(map);
  uint32_t src_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(src));
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
               ::"l"(tma_ptr), "r"(src_ptr), "r"(column), "r"(row) : "memory");
}
"""
