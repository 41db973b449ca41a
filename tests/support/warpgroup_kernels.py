"""Whole kernels as people write them for sm_90a: roles of warpgroups, TMA, wgmma, and attention."""

import ml_dtypes
import numpy as np

from kopt.kernels.plan import Argument, Launch, TensorMap

from .sim_run import Array, SimCase, int32
from .warpgroup_words import WORDS, product

BF16 = ml_dtypes.bfloat16


GEMM = (
    WORDS
    + product("wgmma128", 128, 0)
    + """
constexpr int BM = 128, BN = 128, BK = 64, QSIZE = 3, CONSUMERS = 2;
struct SMem {
  alignas(1024) bf16 A[BM * BK * QSIZE];
  alignas(1024) bf16 B[BK * BN * QSIZE];
  alignas(1024) bf16 C[BN * BM];
  alignas(8) uint64_t full[QSIZE], empty[QSIZE];
};
extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1))
    k(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
      const __grid_constant__ CUtensorMap map_c, int M, int N, int K) {
  extern __shared__ __align__(1024) uint8_t smem[];
  SMem& s = *reinterpret_cast<SMem*>(smem);
  bf16 *sA = s.A, *sB = s.B, *sC = s.C;
  const int num_blocks_k = K / BK, wg_idx = threadIdx.x / 128, tid = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    for (int i = 0; i < QSIZE; ++i) {
      init_barrier(&s.full[i], 1);
      init_barrier(&s.empty[i], CONSUMERS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int tiles_n = N / BN, tiles = M / BM * tiles_n;
  if (wg_idx == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\\n" ::"n"(24));
    if (tid == 0) {
      int phase = 1, qidx = 0;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (int block_k = 0; block_k < num_blocks_k; ++block_k, ++qidx) {
          if (qidx == QSIZE) { qidx = 0; phase ^= 1; }
          wait(&s.empty[qidx], phase);
          expect_bytes(&s.full[qidx], (BK * BN + BK * BM) * sizeof(bf16));
          load_async(&sA[qidx * BK * BM], &map_a, &s.full[qidx], block_k * BK, tile / tiles_n * BM);
          load_async(&sB[qidx * BK * BN], &map_b, &s.full[qidx], block_k * BK, tile % tiles_n * BN);
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\\n" ::"n"(240));
    const int wg = wg_idx - 1;
    float d[BN / 16][8];
    int phase = 0, qidx = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      memset(d, 0, sizeof(d));
      for (int block_k = 0; block_k < num_blocks_k; ++block_k, ++qidx) {
        if (qidx == QSIZE) { qidx = 0; phase ^= 1; }
        wait(&s.full[qidx], phase);
        warpgroup_arrive();
        bf16* wgmma_sA = sA + qidx * BK * BM + 64 * BK * wg;
#pragma unroll
        for (int k_it = 0; k_it < BK / 16; ++k_it)
          wgmma128<1, 1, 1, 0, 0>(d, make_smem_desc(&wgmma_sA[k_it * 16]),
                                  make_smem_desc(&sB[qidx * BK * BN + k_it * 16]));
        warpgroup_commit_batch();
        warpgroup_wait<0>();
        if (tid == 0) arrive(&s.empty[qidx]);
      }
      // The tile goes through shared memory: 64 rows of 128 elements for each warpgroup.
      const int lane = tid % 32, warp = tid / 32;
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      asm volatile("bar.sync %0, 128;" ::"r"(wg + 1) : "memory");
      bf16* block = sC + wg * 64 * BN;
      for (int w = 0; w < BN; w += 16) {
        auto pack = [](float x, float y) {
          __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
          return reinterpret_cast<uint32_t&>(both);
        };
        const float(&e)[8] = d[w / 16];
        const bf16* row = block + (warp * 16 + lane % 16) * BN + w + lane / 16 * 8;
        uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};"
                     ::"r"(at), "r"(pack(e[0], e[1])), "r"(pack(e[2], e[3])),
                       "r"(pack(e[4], e[5])), "r"(pack(e[6], e[7])) : "memory");
      }
      asm volatile("fence.proxy.async;" ::: "memory");
      asm volatile("bar.sync %0, 128;" ::"r"(wg + 1) : "memory");
      if (tid == 0) {
        store_async(&map_c, block, tile % tiles_n * BN, tile / tiles_n * BM + 64 * wg);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""
)


CLUSTER_WORDS = """
__device__ void load_multicast(bf16* dst, const CUtensorMap* map, uint64_t* bar, int column,
                               int row, uint16_t cluster_mask) {
  uint64_t tma_ptr = reinterpret_cast<uint64_t>(map);
  uint32_t mbar_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  uint32_t dst_ptr = static_cast<uint32_t>(__cvta_generic_to_shared(dst));
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
      ::"r"(dst_ptr), "l"(tma_ptr), "r"(mbar_ptr), "r"(column), "r"(row), "h"(cluster_mask)
      : "memory");
}
__device__ void arrive_cluster(uint64_t* bar, uint32_t cta_id) {
  uint32_t smem_addr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  asm volatile(
      "{\\n\\t"
      ".reg .b32 remAddr32;\\n\\t"
      "mapa.shared::cluster.u32  remAddr32, %0, %1;\\n\\t"
      "mbarrier.arrive.release.cluster.shared::cluster.b64  _, [remAddr32], %2;\\n\\t"
      "}" ::"r"(smem_addr), "r"(cta_id), "r"(1) : "memory");
}
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release;\\nbarrier.cluster.wait.acquire;"
               ::: "memory");
}
"""


def _of_cluster(source: str) -> str:
    """Return the GEMM for two blocks with the same columns: each loads half of them for both."""
    changes = (
        ("constexpr int BM", CLUSTER_WORDS + "constexpr int BM"),
        ("init_barrier(&s.empty[i], CONSUMERS)", "init_barrier(&s.empty[i], 2 * CONSUMERS)"),
        (
            "  __syncthreads();\n",
            "  meet_cluster();  // begin\n  const int rank = blockIdx.x % 2;\n",
        ),
        (
            "for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)",
            "for (int tile = blockIdx.x * tiles_n; tile < (blockIdx.x + 1) * tiles_n; ++tile)",
        ),
        (
            "load_async(&sB[qidx * BK * BN], &map_b, &s.full[qidx], block_k * BK,"
            " tile % tiles_n * BN);",
            "load_multicast(&sB[qidx * BK * BN + rank * 64 * BK], &map_b, &s.full[qidx],"
            " block_k * BK, tile % tiles_n * BN + rank * 64, 3);",
        ),
        (
            "if (tid == 0) arrive(&s.empty[qidx]);",
            "if (tid < 2) arrive_cluster(&s.empty[qidx], tid);",
        ),
    )
    for plain, changed in changes:
        assert plain in source
        source = source.replace(plain, changed)
    return source.rstrip().removesuffix("}") + "  meet_cluster();  // end\n}\n"


CLUSTER_GEMM = _of_cluster(GEMM)


def _map(name: str, tensor: str, view: tuple[int, int], box: tuple[int, int]) -> TensorMap:
    swizzle = "128" if box[1] == 64 else "none"
    return TensorMap.model_validate(
        {"name": name, "tensor": tensor, "view": view, "box": box, "swizzle": swizzle}
        | {"element_strides": (1, 1)}
    )


def gemm_case(source: str = GEMM) -> tuple[SimCase, Array]:
    """Return a case of a GEMM of 256x256x320 whole numbers, and what it must leave in `out`."""
    rows, columns, depth = 256, 256, 320
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-3, 3, (lines, depth), endpoint=True).astype(BF16)
        for lines in (rows, columns)
    )
    of_cluster = "meet_cluster" in source
    maps = (
        _map("map_a", "a", (rows, depth), (128, 64)),
        _map("map_b", "b", (columns, depth), (64 if of_cluster else 128, 64)),
        _map("map_c", "out", (rows, columns), (64, 128)),
    )
    arguments = (
        *(Argument(kind="tensor_map", name=one.name) for one in maps),
        *(int32(*one) for one in (("M", rows), ("N", columns), ("K", depth))),
    )
    launch = Launch(
        kernel="k",
        grid=(2, 1, 1),
        cluster=(2 if of_cluster else 1, 1, 1),
        block=(384, 1, 1),
        dynamic_smem_bytes=132096,
        arguments=arguments,
    )
    outputs = {"out": np.zeros((rows, columns), BF16)}
    case = SimCase(source, {"a": a, "b": b}, outputs, tensor_maps=maps, launches=(launch,))
    expected: Array = a.astype(np.float32) @ b.astype(np.float32).T
    return case, expected.astype(BF16)


ATTENTION = (
    WORDS
    + product("scores_of", 128, 0)
    + product("values_by", 64, 4)
    + """
constexpr int KEYS = 128, DEPTH = 64;
// Pieces of 16 bytes; in row r piece c lies in the place c ^ r % 8.
__device__ void fill(bf16* tile, const bf16* from, int rows) {
  for (int i = threadIdx.x; i < rows * 8; i += 128)
    reinterpret_cast<uint4*>(tile)[i / 8 * 8 + (i % 8 ^ i / 8 % 8)] =
        reinterpret_cast<const uint4*>(from)[i];
}
extern "C" __global__ void __launch_bounds__(128)
    k(const bf16* q, const bf16* key, const bf16* value, float* out) {
  __shared__ alignas(1024) bf16 qs[64 * DEPTH], ks[KEYS * DEPTH];
  __shared__ alignas(1024) bf16 vs[KEYS * DEPTH];
  fill(qs, q, 64);
  fill(ks, key, KEYS);
  fill(vs, value, KEYS);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float s[KEYS / 16][8], o[DEPTH / 16][8] = {};
  warpgroup_arrive();
  scores_of<0, 1, 1, 0, 0>(s, make_smem_desc(qs), make_smem_desc(ks));
#pragma unroll
  for (int d = 16; d < DEPTH; d += 16)
    scores_of<1, 1, 1, 0, 0>(s, make_smem_desc(qs + d), make_smem_desc(ks + d));
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  float sums[2] = {};
  for (auto& eight : s)
    for (int i = 0; i < 8; ++i) {
      eight[i] = exp2f(eight[i] * 0.125f);
      sums[i / 2 % 2] += eight[i];
    }
  for (float& sum : sums) {
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  }
  uint32_t p[KEYS / 16][4];  // the sums of two times 8 columns are A of 16 along k
  for (int j = 0; j < KEYS / 16; ++j)
    for (int i = 0; i < 4; ++i) {
      __nv_bfloat162 pair = __floats2bfloat162_rn(s[j][2 * i], s[j][2 * i + 1]);
      p[j][i] = reinterpret_cast<uint32_t&>(pair);
    }
  warpgroup_arrive();
  for (int j = 0; j < KEYS / 16; ++j)
    values_by<1, 1, 1, 0, 1>(o, p[j], make_smem_desc(vs + j * 16 * DEPTH));
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int j = 0; j < DEPTH / 16; ++j)
    for (int i = 0; i < 8; ++i) {
      const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
      const int column = j * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2;
      out[row * DEPTH + column] = o[j][i] / sums[i / 2 % 2];
    }
}
"""
)


def attention_case() -> tuple[SimCase, Array]:
    """Return a case of 64 queries and 128 keys, and what it must leave in `out`, nearly."""
    random = np.random.default_rng(1)
    q, key, value = (random.uniform(-1, 1, (rows, 64)).astype(BF16) for rows in (64, 128, 128))
    case = SimCase(
        ATTENTION,
        inputs={"q": q, "key": key, "value": value},
        outputs={"out": np.zeros((64, 64), np.float32)},
        block=(128, 1, 1),
    )
    weights = np.exp2(q.astype(float) @ key.astype(float).T * 0.125)
    return case, weights.astype(BF16).astype(float) @ value.astype(float) / weights.sum(
        axis=1, keepdims=True
    )
