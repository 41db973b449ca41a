"""Atomic operations, and what they order between threads and blocks."""

import ml_dtypes
import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch, Scratch
from kopt.kernels.status import Status
from support.quick_cases import first_quick
from support.sim_run import Array, Sim, SimCase, line_of

KERNEL = 'extern "C" __global__ void k'


@pytest.mark.parametrize("space", first_quick(["global", "shared"], 1))
def test_integer_atomics_of_every_kind(sim: Sim, space: str) -> None:
    body = """
      const int t = threadIdx.x;
      atomicAdd(a + 0, 2u); atomicSub(a + 1, 1u); atomicMin(a + 2, 100u - t);
      atomicMax(a + 3, 7u * t);
      atomicAnd(a + 4, ~(1u << t)); atomicOr(a + 5, 1u << t); atomicXor(a + 6, 3u << t);
      atomicInc(a + 7, 9u); atomicDec(a + 8, 9u);
      if (t == 0) { old[0] = atomicExch(a + 9, 77u); old[1] = atomicCAS(a + 9, 77u, 78u);
                    old[2] = atomicCAS(a + 9, 5u, 6u); }
    """
    if space == "shared":
        body = f"""__shared__ unsigned a[10];
        if (threadIdx.x < 10) a[threadIdx.x] = in[threadIdx.x];
        __syncthreads(); {body} __syncthreads();
        if (threadIdx.x < 10) out[threadIdx.x] = a[threadIdx.x];"""
    else:
        body = "unsigned* a = out;" + body
    start = np.array([0, 40, 500, 1, 0xFFFFFFFF, 0, 0, 0, 0, 11], np.uint32)
    case = SimCase(
        f"{KERNEL}(const unsigned* in, unsigned* out, unsigned* old) {{ {body} }}",
        {"in": start},
        {"out": start, "old": np.zeros(3, np.uint32)},
        inout=frozenset(("out",)),
    )
    out = sim.outputs(case)
    # Inc counts 0..9 and wraps to 0, Dec counts down from 9 and wraps at 0: 32 steps each.
    expected = [64, 8, 69, 217, 0, 0xFFFFFFFF, 0xFFFFFFFF ^ 0xFFFFFFFE, 2, 8, 78]
    expected[6] = int(np.bitwise_xor.reduce([np.uint32((3 << t) & 0xFFFFFFFF) for t in range(32)]))
    assert out["out"].tolist() == expected
    assert out["old"].tolist() == [11, 77, 78]


def test_atomics_on_floats_and_wide_and_narrow_types(sim: Sim) -> None:
    outputs: dict[str, Array] = {
        "f": np.zeros(1, np.float32),
        "d": np.zeros(1, np.float64),
        "h": np.zeros(1, np.float16),
        "b": np.zeros(2, ml_dtypes.bfloat16),
        "w": np.zeros(2, np.int64),
    }
    case = SimCase(
        KERNEL
        + """(float* f, double* d, __half* h, __nv_bfloat16* b, long long* w) {
      const float t = threadIdx.x;
      atomicAdd(f, t); atomicAdd(d, 0.5 * t); atomicAdd(h, __float2half(1.0f));
      atomicAdd(b, __float2bfloat16(1.0f));
      atomicAdd((__nv_bfloat162*)b, __nv_bfloat162(__float2bfloat16(1.0f), __float2bfloat16(2.0f)));
      atomicAdd((unsigned long long*)w, 1ull << 40); atomicMax(w + 1, (long long)threadIdx.x << 33);
      atomicAdd_block(f, 1.0f); atomicAdd_system(f, 1.0f);
    }""".replace("atomicAdd(b, __float2bfloat16(1.0f));", ""),
        outputs=outputs,
        inout=frozenset(outputs),
    )
    out = sim.outputs(case)
    assert out["f"].tolist() == [496 + 64]
    assert out["d"].tolist() == [248]
    assert out["h"].tolist() == [32]
    assert out["b"].astype(float).tolist() == [32, 64]
    assert out["w"].tolist() == [32 << 40, 31 << 33]


@pytest.mark.slow  # two programs
def test_an_atomic_on_memory_that_nothing_wrote_is_found(sim: Sim) -> None:
    source = KERNEL + "(int* out) {\n  __shared__ int s;\n  atomicAdd(&s, 1);\n  out[0] = 1;\n}"
    case = SimCase(source, outputs={"out": np.zeros(1, np.int32)})
    found = sim.fault(case, Status.UNINITIALIZED_READ)
    assert found.line == line_of(source, "atomicAdd")
    assert "`s`" in found.message
    exchange = SimCase(
        source.replace("atomicAdd(&s, 1)", "atomicExch(&s, 1)"),
        outputs={"out": np.zeros(1, np.int32)},
        block=(1, 1, 1),
    )
    assert sim.execute(exchange).status is Status.PASSED


LAST_BLOCK = (
    KERNEL
    + """(const float* in, float* out, float* partial, unsigned* count) {
  __shared__ bool last;
  __shared__ float sum[32];
  sum[threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < 32; ++i) total += sum[i];
    partial[blockIdx.x] = total;
    FENCE;
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
    *out = total;
  }
}"""
)


@pytest.mark.parametrize(
    ("fence", "status"),
    first_quick(
        [
            ("__threadfence()", Status.PASSED),
            ("", Status.DATA_RACE),
            ("__threadfence_block()", Status.DATA_RACE),
        ],
        2,
    ),
)
def test_last_block_done_needs_its_fence(sim: Sim, fence: str, status: Status) -> None:
    x = np.arange(256, dtype=np.float32)
    case = SimCase(
        LAST_BLOCK.replace("FENCE", fence),
        {"in": x},
        {"out": np.zeros(1, np.float32)},
        scratch=(
            Scratch(name="partial", dtype="float32", shape=(8,)),
            Scratch(name="count", dtype="uint32", shape=(1,), init="zero"),
        ),
        grid=(8, 1, 1),
    )
    for seed in (0, 1):
        outcome = sim.with_(seed=seed).execute(case)
        assert outcome.status is status, outcome.diagnostics
    if status is Status.PASSED:
        assert outcome.outputs["out"].tolist() == [x.sum()]


def test_a_lock_makes_its_section_exclusive_and_ordered(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) {
      __shared__ int lock, count;
      if (threadIdx.x == 0) { lock = 0; count = 0; }
      __syncthreads();
      if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence_block();
        for (int i = 0; i < 50; ++i) count += 1;
        __threadfence_block();
        atomicExch(&lock, 0);
      }
      __syncthreads();
      if (threadIdx.x == 0) out[0] = count;
    }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(1, np.int32)}, block=(128, 1, 1))
    for seed in range(4):
        assert sim.with_(seed=seed).outputs(case)["out"].tolist() == [200]


@pytest.mark.parametrize(
    ("wait", "post"),
    first_quick(
        [
            ("while (*(volatile int*)&flag == 0) {}", "*(volatile int*)&flag = 1"),
            ("while (atomicAdd(&flag, 0) == 0) {}", "atomicExch(&flag, 1)"),
            ("while (atomicAdd(&flag, 0) == 0) __nanosleep(20);", "atomicExch(&flag, 1)"),
        ],
        1,
    ),
)
def test_a_spin_on_a_flag_of_another_warp_ends(sim: Sim, wait: str, post: str) -> None:
    source = (
        KERNEL
        + f"""(int* out) {{
      __shared__ int flag, data;
      if (threadIdx.x == 0) flag = 0;
      __syncthreads();
      if (threadIdx.x < 32) {{ {wait} __threadfence(); out[threadIdx.x] = data; }}
      else if (threadIdx.x == 32) {{ data = 7; __threadfence(); {post}; }}
    }}"""
    )
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)}, block=(64, 1, 1))
    for seed in range(3):
        assert sim.with_(seed=seed).outputs(case)["out"].tolist() == [7] * 32
    unfenced = SimCase(
        source.replace("data = 7; __threadfence();", "data = 7;"),
        outputs=case.outputs,
        block=case.block,
    )
    assert sim.execute(unfenced).status is Status.DATA_RACE


def test_blocks_of_a_cooperative_launch_may_spin_on_each_other(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out, unsigned* count) {
      out[blockIdx.x] = blockIdx.x;
      __threadfence();
      atomicAdd(count, 1u);
      while (atomicAdd(count, 0u) < gridDim.x) {}
      __threadfence();
      if (blockIdx.x == 0) out[4] = out[1] + out[2] + out[3];
    }"""
    )
    case = SimCase(
        source,
        outputs={"out": np.zeros(5, np.int32)},
        scratch=(Scratch(name="count", dtype="uint32", shape=(1,), init="zero"),),
        grid=(4, 1, 1),
        block=(1, 1, 1),
        cooperative=True,
    )
    for seed in (0, 1):
        assert sim.with_(seed=seed).outputs(case)["out"].tolist() == [0, 1, 2, 3, 6]


@pytest.mark.slow  # a program of its own
def test_unsynchronised_volatile_reductions_of_a_warp_are_races(sim: Sim) -> None:
    source = (
        KERNEL
        + """(const float* in, float* out) {
      __shared__ volatile float s[64];
      s[threadIdx.x] = in[threadIdx.x]; s[threadIdx.x + 32] = 0;
      __syncwarp();
      for (int d = 16; d; d /= 2) s[threadIdx.x] += s[threadIdx.x + d];
      if (threadIdx.x == 0) out[0] = s[0];
    }"""
    )
    case = SimCase(source, {"in": np.ones(32, np.float32)}, {"out": np.zeros(1, np.float32)})
    assert sim.execute(case).status is Status.DATA_RACE


def test_later_launches_see_earlier_results_without_a_race(sim: Sim) -> None:
    source = """
    extern "C" __global__ void first(const int* in, int* tmp) {
      tmp[blockIdx.x * 32 + threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x] * 2;
    }
    extern "C" __global__ void second(int* tmp, int* out) {
      const int i = blockIdx.x * 32 + threadIdx.x;
      out[i] = tmp[127 - i] + 1;
    }
    extern "C" __global__ void third(int* out, int n, long long m, float f) {
      out[threadIdx.x] += n + (int)(m >> 40) + (int)(2 * f);
    }"""
    tmp = Argument(kind="scratch", name="tmp")
    inputs, out = (Argument(kind="tensor", name=name) for name in ("in", "out"))
    numbers = (
        Argument(kind="int32", name="n", value=-3),
        Argument(kind="int64", name="m", value=-(5 << 40)),
        Argument(kind="float32", name="f", value=1.5),
    )
    launches = (
        Launch(kernel="first", grid=(4, 1, 1), block=(32, 1, 1), arguments=(inputs, tmp)),
        Launch(kernel="second", grid=(4, 1, 1), block=(32, 1, 1), arguments=(tmp, out)),
        Launch(kernel="third", grid=(1, 1, 1), block=(128, 1, 1), arguments=(out, *numbers)),
    )
    x = np.arange(128, dtype=np.int32)
    case = SimCase(
        source,
        {"in": x},
        {"out": np.zeros(128, np.int32)},
        scratch=(Scratch(name="tmp", dtype="int32", shape=(128,)),),
        launches=launches,
    )
    for workers in (1, 2, 4):
        found = sim.with_(workers=workers).outputs(case)["out"]
        np.testing.assert_array_equal(found, x[::-1] * 2 + 1 - 5)
