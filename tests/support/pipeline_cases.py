"""Producers and consumers in hand-written PTX, with what they must leave: on sim and on a GPU."""

from dataclasses import dataclass

import numpy as np

from kopt.kernels.plan import TensorMap

from .sim_run import Array, SimCase

X = np.arange(1024, dtype=np.float32)
WORDS = """
using u64 = unsigned long long;
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void make(u64* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(barrier)), "r"(count));
}
__device__ void expect(u64* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;"
               :: "r"(at(barrier)), "r"(bytes) : "memory");
}
__device__ void arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];"
               :: "r"(at(barrier)) : "memory");
}
__device__ bool passed(u64* barrier, unsigned parity) {
  unsigned done;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;"
               " selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(barrier)), "r"(parity) : "memory");
  return done;
}
__device__ void copy(void* to, const void* from, unsigned bytes, u64* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1], %2, [%3];"
               :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(barrier)) : "memory");
}
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
"""
# A warp loads tiles of 64 floats into two stages, another one adds 1 and stores them.
PIPELINE = (
    WORDS
    + """
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(128) float stages[2][64];
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) { make(full + s, 1); make(empty + s, 32); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int step = 0; step < 16; ++step) {
      const int stage = step % 2;
      while (!passed(empty + stage, step / 2 % 2 ^ 1)) {}  // free
      if (threadIdx.x == 0) {
        expect(full + stage, 256);
        copy(stages[stage], in + 64 * step, 256, full + stage);  // fill
      }
    }
    return;
  }
  for (int step = 0; step < 16; ++step) {
    const int stage = step % 2, t = threadIdx.x % 32;
    while (!passed(full + stage, step / 2 % 2)) {}  // wait
    const float a = stages[stage][t], b = stages[stage][63 - t];  // read
    fence();  // before
    arrive(empty + stage);
    out[64 * step + t] = a + 1;
    out[64 * step + 63 - t] = b + 1;
  }
}"""
)


TOKENS = (
    WORDS
    + """
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ u64 barrier; __shared__ float s[64];
  const unsigned t = threadIdx.x, place = at(&barrier);
  if (t == 0) make(&barrier, 64);
  __syncthreads();
  u64 state = 0; unsigned done = 0;
  s[t] = in[t];
  if (t % 2 == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(place));
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(place), "l"(state) : "memory");
  out[t] = s[62 - (t & 62)];
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(place));
    int early = passed(&barrier, 1);  // an H200 held no phase open without it
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0], 63;" :: "r"(place));
    early += passed(&barrier, 1);
    arrive(&barrier);
    out[64] = early + passed(&barrier, 1) + passed(&barrier, 1);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(place));
    out[65] = passed(&barrier, 1);
    arrive(&barrier);
    out[66] = passed(&barrier, 0);
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(place));  // LAST
  }
}"""
)
ADDRESSES = """
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ float s[64];
  const unsigned long long at = __cvta_generic_to_shared(s + threadIdx.x);
  asm volatile("st.shared.f32 [%0], %1;" :: "l"(at), "f"(in[threadIdx.x]) : "memory");
  __syncthreads();
  float a;
  asm volatile("{.reg .u64 p; cvta.to.shared.u64 p, %1; ld.shared.f32 %0, [p+4];}"
               : "=f"(a) : "l"(s + threadIdx.x % 32));
  out[threadIdx.x] = a + *static_cast<float*>(__cvta_shared_to_generic(at)) + (at >> 18);
}"""
VOTES = """
extern "C" __global__ void k(const float* in, float* out) {
  unsigned count, all, any; const unsigned t = threadIdx.x;
  if (t < 64)
    asm volatile("{.reg .pred p; setp.lt.u32 p, %1, 5; bar.red.popc.u32 %0, 1, 64, p;}"
                 : "=r"(count) : "r"(t));
  else
    asm volatile("{.reg .pred p; setp.lt.u32 p, %1, 70;"
                 " barrier.cta.red.popc.aligned.u32 %0, 2, 32, !p;}"
                 : "=r"(count) : "r"(t));
  asm volatile("{.reg .pred p, q; setp.lt.u32 p, %1, 96; bar.red.and.pred q, 0, p;"
               " selp.u32 %0, 1, 0, q;}" : "=r"(all) : "r"(t));
  asm volatile("{.reg .pred p, q; setp.eq.u32 p, %1, 96; bar.red.or.pred q, 3, 96, p;"
               " selp.u32 %0, 1, 0, q;}" : "=r"(any) : "r"(t));
  out[t] = count * 100 + all * 10 + any;
}"""
TILES = (
    WORDS
    + """
#include <cuda.h>
extern "C" __global__ void k(const float* in, float* out, float* back,
                             const __grid_constant__ CUtensorMap from,
                             const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(1024) float tile[4 * 16];
  __shared__ u64 full;
  if (threadIdx.x == 0) {
    make(&full, 1);
    expect(&full, sizeof tile);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" :: "r"(at(tile)), "l"(&from), "r"(at(&full)),
                 "r"(24), "r"(6) : "memory");
  }
  __syncthreads();
  while (!passed(&full, 0)) {}
  out[threadIdx.x] = tile[threadIdx.x];
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(&to), "r"(at(tile)), "r"(24), "r"(6) : "memory");
    asm volatile("cp.async.bulk.commit_group;\\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}"""
)


LATE = (
    WORDS
    + """
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(16) float s[4 * 64];
  __shared__ u64 full;
  const unsigned t = threadIdx.x;
  if (t == 0) make(&full, ARRIVALS);
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(s + 4 * t)), "l"(in + 4 * t));
  asm volatile("cp.async.mbarrier.arrive.HOW.b64 [%0];" :: "r"(at(&full)) : "memory");
  EXTRA
  while (!passed(&full, 0)) {}
  for (int i = 0; i < 4; ++i) out[4 * t + i] = s[255 - 4 * t - i];  // read
}"""
)


def pipeline_case(source: str, threads: int = 64, outputs: int = 1024) -> SimCase:
    """Return a case of one block that reads `X` and leaves so many floats."""
    out = np.zeros(outputs, np.float32)
    return SimCase(source, inputs={"in": X}, outputs={"out": out}, block=(threads, 1, 1))


def late_case(arrivals: int, how: str, extra: str = "") -> SimCase:
    """Return a case whose copies arrive at an mbarrier for so many arrivals."""
    source = LATE.replace("ARRIVALS", str(arrivals)).replace("HOW", how).replace("EXTRA", extra)
    return pipeline_case(source, 64, 256)


@dataclass(frozen=True)
class PipelineCase:
    """A case and what it leaves in `out`."""

    name: str
    case: SimCase
    expected: Array


def _tiles() -> tuple[SimCase, Array]:
    rows = np.arange(1, 257, dtype=np.float32).reshape(8, 32)

    def tiles(name: str, tensor: str) -> TensorMap:
        return TensorMap(
            name=name,
            tensor=tensor,
            view=(8, 32),
            box=(4, 16),
            element_strides=(1, 1),
            swizzle="64",
        )

    case = SimCase(
        TILES,
        inputs={"in": rows},
        outputs={"out": np.zeros(64, np.float32), "back": np.zeros_like(rows)},
        inout=frozenset({"back"}),
        tensor_maps=(tiles("from", "in"), tiles("to", "back")),
        block=(64, 1, 1),
    )
    tile = np.zeros((4, 16), np.float32)
    tile[:2, :8] = rows[6:, 24:]
    places = np.arange(64) * 4
    swizzled = np.empty(64, np.float32)
    swizzled[(places ^ (places >> 7 & 3) << 4) // 4] = tile.ravel()
    return case, swizzled


_LANES = np.arange(96)
_ALL_WAIT = 'asm volatile("cp.async.wait_all;" ::: "memory");'
PIPELINE_CASES = (
    PipelineCase("bulk copies through two stages", pipeline_case(PIPELINE), X + 1),
    PipelineCase(
        "tokens, counts and bytes of an mbarrier",
        pipeline_case(TOKENS, outputs=67),
        np.concatenate([62 - (_LANES[:64] & 62), [0, 1, 1]]),
    ),
    PipelineCase(
        "addresses in 64 bits",
        pipeline_case(ADDRESSES, outputs=64),
        _LANES[:64] % 32 + 1 + _LANES[:64],
    ),
    PipelineCase(
        "votes at named barriers",
        pipeline_case(VOTES, 96, 96),
        np.where(_LANES < 64, 510, 2610),
    ),
    PipelineCase("tiles of a tensor map", *_tiles()),
    *(
        PipelineCase(f"arrivals of copies {number}", case, X[255::-1])
        for number, case in enumerate(
            (
                late_case(64, "noinc.shared::cta"),
                late_case(64, "shared", "arrive(&full);"),
                late_case(64, "noinc.shared", _ALL_WAIT),
            )
        )
    ),
)
"""What each leaves in `out` follows from the source alone."""
