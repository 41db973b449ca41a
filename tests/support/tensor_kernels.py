"""A small kernel with one tcgen05.mma, and a GEMM as people write them for sm_100a."""

import ml_dtypes
import numpy as np

from kopt.kernels.plan import Argument, Launch, TensorMap

from .sim_run import Array, SimCase, int32

BF16 = ml_dtypes.bfloat16
ALLOC = (
    'asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"'
    ' ::"r"(at_shared(&place)), "r"(COLUMNS) : "memory");'
)
FREE = (
    'asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(d), "r"(COLUMNS));'
)
BEFORE = 'asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");'
AFTER = 'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");'
WAIT_LOADS = 'asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");'
WAIT_STORES = 'asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");'
PROXY = 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'
WORDS = """
#include <cuda.h>
#include <cuda_bf16.h>
using u32 = unsigned;
using u64 = unsigned long long;
using bf16 = __nv_bfloat16;
__device__ u32 at_shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void init_barrier(u64* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at_shared(bar)), "r"(count));
}
__device__ void wait(u64* bar, int parity) {  // wait for
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               " @p bra done; bra again; done: }" ::"r"(at_shared(bar)), "r"(parity) : "memory");
}
__device__ void arrive(u64* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at_shared(bar)) : "memory");
}
__device__ void commit(u64* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               ::"r"(at_shared(bar)) : "memory");
}
__device__ void multiply(u32 d, u64 a, u64 b, u32 instruction, u32 adds) {
  asm volatile(  // product
      "{.reg .pred p; setp.ne.b32 p, %4, 0;"
      " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}"
      ::"r"(d), "l"(a), "l"(b), "r"(instruction), "r"(adds) : "memory");
}
"""
# Rows 8 * i to 8 * i + 7 are 256 bytes: eight elements along k of each, then eight more.
KERNEL = (
    WORDS
    + f"""
constexpr u32 COLUMNS = 32, BF16_64x8 = 4u << 24 | 1u << 17 | 1u << 10 | 1u << 7 | 1u << 4;
__device__ u64 matrix(const void* p) {{  // core matrices of 128 bytes, two along k
  return (at_shared(p) & 0x3ffff) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46;
}}
extern "C" __global__ void k(const float* in, float* out) {{
  __shared__ alignas(128) bf16 a[64 * 16], b[8 * 16];
  __shared__ u32 place;
  __shared__ u64 bar;
  const int t = threadIdx.x, warp = t / 32;
  if (t == 0) init_barrier(&bar, 1);
  for (int i = t; i < 64 * 16; i += 128) a[i] = __float2bfloat16(in[i]);
  b[t] = __float2bfloat16(in[1024 + t]);
  {PROXY}
  if (warp == 0) {{ {ALLOC} }}  // allocates
  __syncthreads();
  const u32 d = place;
  if (t == 0) {{
    multiply(d, matrix(a), matrix(b), BF16_64x8, 0);
    commit(&bar);
  }}
  wait(&bar, 0);
  {AFTER}
  float r[8];
  asm volatile("tcgen05.ld.sync.aligned.16x64b.x4.b32 {{%0, %1, %2, %3}}, [%4];"  // load
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
               : "r"(d + (warp << 21)) : "memory");
  {WAIT_LOADS}
  for (int i = 0; i < 4; ++i) out[t * 4 + i] = r[i];
  __syncthreads();
  if (warp == 0) {{ {FREE} }}  // frees
}}"""
)
IN = np.random.default_rng(0).integers(-4, 4, 1152).astype(np.float32)


def kernel_case(source: str = KERNEL, threads: int = 128) -> SimCase:
    """Return a case of one product of 64x8x16."""
    outputs = {"out": np.zeros(512, np.float32)}
    return SimCase(source, {"in": IN}, outputs, block=(threads, 1, 1))


def kernel_sums() -> Array:
    """Return what it must leave in `out`: registers of 16x64b.x4, of 16 rows by each warp."""
    a, b = (
        part.reshape(-1, 2, 8, 8).transpose(0, 2, 1, 3).reshape(-1, 16)
        for part in (IN[:1024], IN[1024:])
    )
    products = a @ b.T
    found = np.empty((128, 4), np.float32)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(4):
            row, column = 16 * warp + lane // 4 + lane % 2 * 8, lane // 2 % 2 + 2 * i
            found[thread, i] = products[row, column]
    return found.ravel()


GEMM = (
    WORDS
    + f"""
constexpr int BM = 128, BN = 128, BK = 64, STAGES = 3;
constexpr u32 COLUMNS = 256;  // two accumulators: the next tile begins while one is stored
constexpr u32 INSTRUCTION = 8u << 24 | 16u << 17 | 1u << 10 | 1u << 7 | 1u << 4;
struct Shared {{
  alignas(1024) bf16 a[STAGES][BM * BK], b[STAGES][BN * BK];
  alignas(8) u64 full[STAGES], empty[STAGES], done[2], stored[2];
  u32 place;
}};
__device__ u64 rows_of_128(const void* p) {{  // swizzled, eight of them are 1,024 bytes
  return (at_shared(p) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}}
__device__ void load(bf16* to, const CUtensorMap* map, u64* bar, int column, int row) {{
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {{%3, %4}}], [%2];"
      ::"r"(at_shared(to)), "l"(map), "r"(at_shared(bar)), "r"(column), "r"(row) : "memory");
}}
extern "C" __global__ void __launch_bounds__(192)
    k(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
      bf16* out, int M, int N, int K) {{
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const int warp = threadIdx.x / 32, steps = K / BK, tiles_n = N / BN, tiles = M / BM * tiles_n;
  if (threadIdx.x == 0) {{
    for (u64& bar : s.full) init_barrier(&bar, 1);
    for (u64& bar : s.empty) init_barrier(&bar, 1);
    for (u64& bar : s.done) init_barrier(&bar, 1);
    for (u64& bar : s.stored) init_barrier(&bar, 128);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }}
  u32& place = s.place;
  if (warp == 5) {{
    {ALLOC}
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }}
  {BEFORE}
  __syncthreads();
  {AFTER}
  const u32 d = place;
  if (warp == 4 && threadIdx.x % 32 == 0) {{  // loads
    int stage = 0, phase = 1;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
      for (int step = 0; step < steps; ++step) {{
        wait(&s.empty[stage], phase);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(at_shared(&s.full[stage])), "r"((BM + BN) * BK * 2) : "memory");
        load(s.a[stage], &map_a, &s.full[stage], step * BK, tile / tiles_n * BM);
        load(s.b[stage], &map_b, &s.full[stage], step * BK, tile % tiles_n * BN);
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }}
  }} else if (warp == 5) {{
    u32 leader;
    asm volatile("{{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}}"
                 : "=r"(leader));
    int stage = 0, phase = 0, half = 0, free = 1;
    for (int tile = blockIdx.x; leader && tile < tiles; tile += gridDim.x) {{
      wait(&s.stored[half], free);
      {AFTER}  // of the sums
      for (int step = 0; step < steps; ++step) {{
        wait(&s.full[stage], phase);
        {AFTER}
        for (int j = 0; j < BK / 16; ++j)
          multiply(d + half * BN, rows_of_128(s.a[stage] + j * 16),
                   rows_of_128(s.b[stage] + j * 16), INSTRUCTION, step + j > 0);
        commit(&s.empty[stage]);
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }}
      commit(&s.done[half]);
      if (half ^= 1; half == 0) free ^= 1;
    }}
  }} else if (warp < 4) {{
    int half = 0, phase = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
      wait(&s.done[half], phase);
      {AFTER}
      const int row = tile / tiles_n * BM + threadIdx.x;
      for (int c = 0; c < BN; c += 8) {{
        float r[8];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32"
                     " {{%0, %1, %2, %3, %4, %5, %6, %7}}, [%8];"
                     : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]),
                       "=f"(r[6]), "=f"(r[7])
                     : "r"(d + (warp << 21) + half * BN + c) : "memory");
        {WAIT_LOADS}
        for (int i = 0; i < 8; ++i)
          out[row * N + tile % tiles_n * BN + c + i] = __float2bfloat16(r[i]);
      }}
      {BEFORE}  // of the stored
      arrive(&s.stored[half]);
      if (half ^= 1; half == 0) phase ^= 1;
    }}
  }}
  {BEFORE}
  __syncthreads();
  {AFTER}
  if (warp == 5) {{ {FREE} }}
}}"""
)


def gemm_case(source: str = GEMM) -> tuple[SimCase, Array]:
    """Return a case of a GEMM of 256x384x320 whole numbers, and what it must leave in `out`."""
    rows, columns, depth = 256, 384, 320
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-3, 3, (lines, depth), endpoint=True).astype(BF16)
        for lines in (rows, columns)
    )
    of_cluster = "meet_cluster" in source
    maps = tuple(
        TensorMap.model_validate(
            {"name": f"map_{name}", "tensor": name, "view": (lines, depth), "box": (size, 64)}
            | {"swizzle": "128", "element_strides": (1, 1)}
        )
        for name, lines, size in (("a", rows, 128), ("b", columns, 64 if of_cluster else 128))
    )
    launch = Launch(
        kernel="k",
        grid=(2, 1, 1),
        cluster=(2 if of_cluster else 1, 1, 1),
        block=(192, 1, 1),
        dynamic_smem_bytes=99328,
        arguments=(
            *(Argument(kind="tensor_map", name=one.name) for one in maps),
            Argument(kind="tensor", name="out"),
            *(int32(*one) for one in (("M", rows), ("N", columns), ("K", depth))),
        ),
    )
    outputs = {"out": np.zeros((rows, columns), BF16)}
    case = SimCase(source, {"a": a, "b": b}, outputs, tensor_maps=maps, launches=(launch,))
    expected: Array = a.astype(np.float32) @ b.astype(np.float32).T
    return case, expected.astype(BF16)


_CLUSTER_WORDS = """
__device__ void load_for_both(bf16* to, const CUtensorMap* map, u64* bar, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
      ::"r"(at_shared(to)), "l"(map), "r"(at_shared(bar)), "r"(column), "r"(row),
        "h"(static_cast<unsigned short>(3)) : "memory");
}
__device__ void commit_to_both(u64* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster"
               ".multicast::cluster.b64 [%0], %1;"
               ::"r"(at_shared(bar)), "h"(static_cast<unsigned short>(3)) : "memory");
}
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;"
               ::: "memory");
}
"""


def _of_cluster(source: str) -> str:
    """Return the GEMM for two blocks with the same columns: each loads half of them for both."""
    changes = (
        ('extern "C"', _CLUSTER_WORDS + 'extern "C"'),
        ("s.empty) init_barrier(&bar, 1)", "s.empty) init_barrier(&bar, 2)"),
        (
            f"{BEFORE}\n  __syncthreads();\n  {AFTER}\n  const u32 d",
            f"{BEFORE}\n  meet_cluster();\n  {AFTER}\n"
            "  const int rank = blockIdx.x % 2;\n  const u32 d",
        ),
        (
            "load(s.b[stage], &map_b, &s.full[stage], step * BK, tile % tiles_n * BN);",
            "load_for_both(s.b[stage] + rank * 64 * BK, &map_b, &s.full[stage], step * BK,"
            " tile % tiles_n * BN + rank * 64);",
        ),
        ("commit(&s.empty[stage]);", "commit_to_both(&s.empty[stage]);"),
        ("tile = blockIdx.x;", "tile = blockIdx.x * tiles_n;"),
        ("tile < tiles; tile += gridDim.x", "tile < (blockIdx.x + 1) * tiles_n; ++tile"),
    )
    for plain, changed in changes:
        assert plain in source, plain
        source = source.replace(plain, changed)
    return source.rstrip().removesuffix("}") + "  meet_cluster();  // end\n}\n"


CLUSTER_GEMM = _of_cluster(GEMM)
