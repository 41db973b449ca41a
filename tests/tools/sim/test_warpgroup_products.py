"""What wgmma leaves to the program is asked of it: fences, waits, operands that stay."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from kopt.tools.sim.ptx.lowering import lower_ptx
from support.sim_run import Array, Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each
FENCE = 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'
COMMIT = 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");'
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'
PROXY = 'asm volatile("fence.proxy.async;" ::: "memory");'
WORDS = """
#include <cuda_bf16.h>
using u64 = unsigned long long;
__device__ u64 matrix(const void* p) {  // core matrices of 128 bytes, two along k
  return (__cvta_generic_to_shared(p) & 0x3ffff) >> 4 | 8ull << 16 | 16ull << 32;
}
__device__ void multiply(float (&d)[4], u64 a, u64 b) {
  asm volatile(  // product
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
      " {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
}
"""
# Rows 8 * i to 8 * i + 7 are 256 bytes: eight elements along k of each, then eight more.
KERNEL = (
    WORDS
    + f"""
extern "C" __global__ void k(const float* in, float* out) {{
  __shared__ alignas(128) __nv_bfloat16 a[64 * 16], b[8 * 16];
  const int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) a[i] = __float2bfloat16(in[i]);  // store
  b[t] = __float2bfloat16(in[1024 + t]);
  {PROXY}
  __syncthreads();
  float d[4] = {{1, 2, 3, 4}};
  {FENCE}
  multiply(d, matrix(a), matrix(b));
  {COMMIT}
  {WAIT}
  for (int i = 0; i < 4; ++i) out[t * 4 + i] = d[i];  // use
}}"""
)
IN = np.random.default_rng(0).integers(-4, 4, 1152).astype(np.float32)


def _case(source: str, threads: int = 128) -> SimCase:
    assert source != KERNEL
    return SimCase(
        source,
        inputs={"in": IN},
        outputs={"out": np.zeros(512, np.float32)},
        block=(threads, 1, 1),
    )


def _expected(times: int = 1) -> Array:
    a, b = (
        part.reshape(-1, 2, 8, 8).transpose(0, 2, 1, 3).reshape(-1, 16)
        for part in (IN[:1024], IN[1024:])
    )
    products = a @ b.T
    found = np.empty((128, 4), np.float32)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(4):
            row, column = warp * 16 + lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2
            found[thread, i] = i + 1 + times * products[row, column]
    return found.ravel()


PRODUCT = "multiply(d, matrix(a), matrix(b));"


@pytest.mark.parametrize(
    ("right", "wrong", "times"),
    [
        (PRODUCT, f" {PRODUCT}", 1),
        (PRODUCT, f"{PRODUCT} {PRODUCT}", 2),
        (PRODUCT, f"{PRODUCT} {COMMIT} {WAIT.replace('0', '1')} {PRODUCT}", 2),
        (PRODUCT, f"{PRODUCT} {COMMIT} {WAIT} {PRODUCT}", 2),
        (PRODUCT, f'asm volatile("" : "+f"(d[0]) :: "memory"); {PRODUCT}', 1),
        (COMMIT, f'asm volatile("" : "+f"(d[0]), "+f"(d[3]) :: "memory"); {COMMIT}', 1),
        (" & 0x3ffff) >> 4", ") >> 4", 1),
        (FENCE, f"{FENCE} float e[4] = {{}}; {FENCE} multiply(e, matrix(b), matrix(b));", 1),
    ],
    ids=["one", "chain", "groups", "waits", "pinned before", "pinned", "address", "two sums"],
)
def test_products_land_in_their_registers(sim: Sim, right: str, wrong: str, times: int) -> None:
    if "matrix(b), matrix(b)" in wrong:  # reads 64 rows: those of `a`
        wrong = wrong.replace("matrix(b), matrix(b)", "matrix(a), matrix(b)")
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(_case(KERNEL.replace(right, wrong)))["out"]
        np.testing.assert_array_equal(found, _expected(times))


@pytest.mark.parametrize(
    ("right", "wrong", "says", "mark"),
    [
        (FENCE, "", "no wgmma.fence comes before", "// product"),
        (WAIT, "", "under way writes this register", "// use"),
        (COMMIT, "", "under way writes this register", "// use"),
        (WAIT, WAIT.replace("0", "1"), "under way writes this register", "// use"),
        (COMMIT, f"{COMMIT}\nd[2] = 0;  // early", "under way writes this register", "// early"),
        (FENCE, f"{FENCE}\nd[2] = in[t];", "used behind the last wgmma.fence", "// product"),
        (PRODUCT, f"{PRODUCT} {COMMIT} {WAIT} d[1] *= 2; {PRODUCT}", "last wgmma.fence", ""),
        (PROXY, "", "no fence_proxy_async() lies between", "// product"),
        (
            COMMIT,
            f"{COMMIT}\n__syncthreads(); b[t] = a[t];  // early",
            "still reads it",
            "// early",
        ),
        ("__syncthreads();", "", "", ""),
        (PRODUCT, "{ float e[4] = {}; multiply(e, matrix(a), matrix(b)); }", "", ""),
    ],
    ids=[
        *("fence", "wait", "commit", "group", "store", "use", "next", "proxy", "overwritten"),
        *("barrier", "gone"),
    ],
)
def test_what_does_not_wait_is_found(
    sim: Sim, right: str, wrong: str, says: str, mark: str
) -> None:
    source = KERNEL.replace(right, wrong)
    found = sim.fault(_case(source), Status.DATA_RACE)
    assert says in found.message
    assert not mark or found.line == line_of(source, mark)


def test_store_into_operands_after_the_wait_is_none(sim: Sim) -> None:
    source = KERNEL.replace(WAIT, f"{WAIT}\n__syncthreads(); a[t] = b[t];")
    np.testing.assert_array_equal(sim.outputs(_case(source))["out"], _expected())
    unordered = KERNEL.replace(WAIT, f"{WAIT}\na[t] = b[t];  // early")
    assert sim.fault(_case(unordered), Status.DATA_RACE).line == line_of(unordered, "// early")


@pytest.mark.parametrize(
    ("right", "wrong", "threads", "says"),
    [
        (PRODUCT, f"if (t < 96) {PRODUCT}", 128, "a wgmma instruction"),
        (PRODUCT, f" {PRODUCT}", 96, "needs all 128 threads of its warpgroup, of which 96 run"),
        (
            PRODUCT,
            "multiply(d, matrix(a), matrix(b) + (t == 77 ? 8 : 0));",
            128,
            "threads 0 and 77",
        ),
        (COMMIT, f"if (t != 5) {COMMIT}", 128, "a wgmma instruction"),
    ],
)
def test_threads_of_a_warpgroup_that_do_not_come_are_told(
    sim: Sim, right: str, wrong: str, threads: int, says: str
) -> None:
    case = _case(KERNEL.replace(right, wrong), threads)
    assert says in sim.fault(case, Status.BARRIER_DIVERGENCE).message


@pytest.mark.parametrize(
    ("right", "wrong", "status", "says"),
    [
        ("matrix(b));", "matrix(b) + 8);", Status.OUT_OF_BOUNDS, "load of `b` at byte 256 of 256"),
        ("16ull << 32", "1ull << 46", Status.CRASH, "bits that must be 0"),
        ("b[t] = ", "if (t) b[t] = ", Status.UNINITIALIZED_READ, "`b`"),
    ],
)
def test_descriptor_that_leads_elsewhere_is_told(
    sim: Sim, right: str, wrong: str, status: Status, says: str
) -> None:
    assert says in sim.fault(_case(KERNEL.replace(right, wrong)), status).message


def test_registers_of_another_shape_must_be_waited_for(sim: Sim) -> None:
    other = """
__device__ void wide(float (&d)[4], float (&e)[4], u64 a, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"
               " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(e[0]), "+f"(e[1]), "+f"(e[2]),
                 "+f"(e[3]) : "l"(a), "l"(b));
}
extern"""
    both = f"float e[4] = {{}}; {FENCE} {PRODUCT} wide(d, e, matrix(a), matrix(a));"
    source = KERNEL.replace(PRODUCT, both).replace("extern", other, 1)
    assert "another shape" in sim.fault(_case(source), Status.DATA_RACE).message


OTHER = (
    ("mma_async", "mma_async.sp"),
    ("sync.aligned", "sync"),
    ("k16", "k8"),
    ("n8", "n12"),
    ("bf16.bf16", "bf16.f16"),
    ("f32.bf16.bf16", "f16.bf16.bf16"),
    ("f32.bf16.bf16", "f32.tf32.tf32"),
    ("m64n8k16.f32.bf16.bf16", "m64n8k256.s32.b1.b1.and.popc"),
    ("m64n8k16.f32.bf16.bf16", "m64n8k16.satfinite.f32.bf16.bf16"),
    ("%2, %3}", "%2}"),
    ("%2, %3}", "%2, %0}"),
    ("%2, %3}", "%2, %5}"),
    (", 0, 0;", ", 0;"),
    ("{%0,", "{s,"),
)


@pytest.mark.parametrize(("known", "other"), OTHER, ids=[other for _, other in OTHER])
def test_other_forms_are_left(known: str, other: str) -> None:
    text = (
        "{.reg .f32 s; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
        " {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;}"
    )
    sums = ", ".join(f'"+f"(d[{n}])' for n in range(4))
    before, after = (
        f'void f() {{ asm volatile("{one}" : {sums} : "l"(a), "r"(b)); }}'
        for one in (text, text.replace(known, other))
    )
    assert lower_ptx(before) != before
    assert lower_ptx(after) == after
