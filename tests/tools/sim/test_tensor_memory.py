"""What tcgen05 leaves to the program is asked of it: columns, waits, fences, operands that stay."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from kopt.tools.sim.ptx.lowering import lower_ptx, unknown_instruction
from support.sim_run import Sim, line_of
from support.tensor_kernels import (
    AFTER,
    ALLOC,
    BEFORE,
    FREE,
    KERNEL,
    PROXY,
    WAIT_LOADS,
    WAIT_STORES,
    kernel_case,
    kernel_sums,
)

pytestmark = pytest.mark.slow  # a program for each
MULTIPLY = "multiply(d, matrix(a), matrix(b), BF16_64x8, 0);"
ADD = MULTIPLY.replace(", 0);", ", 1);")
COMMIT = "commit(&bar);"
WAIT = "wait(&bar, 0);"
LOAD = "d + (warp << 21)"
STORE = (
    'asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};"'
    ' ::"r"(d + (warp << 21)), "r"(t) : "memory");'
)


def _changed(*changes: tuple[str, str]) -> str:
    source = KERNEL
    for right, wrong in changes:
        assert right in source
        source = source.replace(right, wrong)
    return source


@pytest.mark.parametrize(
    ("right", "wrong", "times"),
    [
        (MULTIPLY, f" {MULTIPLY}", 1),
        (MULTIPLY, f"{MULTIPLY} {ADD}", 2),
        (COMMIT, f"{COMMIT} {ADD}", 1),
        (WAIT, f"{WAIT} if (t == 0) {{ {ADD} {COMMIT} }} wait(&bar, 1);", 2),
    ],
    ids=["one", "chain", "committed before", "waits"],
)
def test_product_is_there_once_it_was_waited_for(
    sim: Sim, right: str, wrong: str, times: int
) -> None:
    source = _changed((right, wrong))
    if times == 1 and ADD in source:  # the second product is under way for good
        assert "mbarrier must come" in sim.fault(kernel_case(source), Status.DATA_RACE).message
        return
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(kernel_case(source))["out"]
        np.testing.assert_array_equal(found, times * kernel_sums())


@pytest.mark.parametrize(
    ("right", "wrong", "says", "mark"),
    [
        (WAIT, "", "a tcgen05.mma or .cp under way writes it", "// load"),
        (AFTER, "", "no tcgen05.fence::after_thread_sync lies between", "// load"),
        (PROXY, "", "no fence_proxy_async() lies between", "// product"),
        (WAIT, f"b[t] = a[t];  // early\n{WAIT}", "under way still reads it", "// early"),
        (WAIT_LOADS, "", "a tcgen05.ld under way reads it", "// frees"),
        (MULTIPLY, MULTIPLY.replace("d,", "d + 4,") + MULTIPLY, "under way writes it", ""),
    ],
    ids=["wait", "fence", "proxy", "overwritten", "loads", "other sums"],
)
def test_what_does_not_wait_is_found(
    sim: Sim, right: str, wrong: str, says: str, mark: str
) -> None:
    source = _changed((right, wrong))
    found = sim.fault(kernel_case(source), Status.DATA_RACE)
    assert says in found.message
    assert not mark or found.line == line_of(source, mark)


def test_product_without_a_commit_is_never_told_of(sim: Sim) -> None:
    found = sim.fault(kernel_case(_changed((COMMIT, ""))), Status.BARRIER_DIVERGENCE)
    assert "`bar` waited for" in found.message
    assert "lacks 1 arrivals" in found.message


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([(WAIT_STORES, "")], "a tcgen05.st under way writes it"),
        ([(BEFORE, "")], "with no tcgen05.fence::before_thread_sync behind that"),
        ([(f"{AFTER} {ADD}", ADD)], "no tcgen05.fence::after_thread_sync lies between"),
        ([(f"{BEFORE} __syncthreads();", BEFORE)], "of the same block wrote it"),
    ],
    ids=["wait", "before", "after", "barrier"],
)
def test_stores_of_warps_come_before_a_product(
    sim: Sim, changes: list[tuple[str, str]], says: str
) -> None:
    stored = f"{STORE}\n{WAIT_STORES}\n{BEFORE} __syncthreads();"
    columns = STORE.replace("d + (warp << 21)", "d + (warp << 21) + c")
    stored = stored.replace(STORE, f"for (int c = 0; c < 8; ++c) {columns}")
    source = _changed(
        ("const u32 d = place;", f"const u32 d = place;\n{stored}"),
        (MULTIPLY, f"{AFTER} {ADD}"),
    )
    found = sim.outputs(kernel_case(source))["out"]
    kept = np.arange(128).astype(np.int32).view(np.float32)  # denormal numbers
    np.testing.assert_allclose(found, kernel_sums(), atol=float(kept.max()))
    for right, wrong in changes:
        assert right in source
        source = source.replace(right, wrong)
    assert says in sim.fault(kernel_case(source), Status.DATA_RACE).message


@pytest.mark.parametrize(
    ("right", "wrong", "status", "says"),
    [
        (MULTIPLY, ADD, Status.UNINITIALIZED_READ, "lane 0, column 0 of tensor memory"),
        (LOAD, f"{LOAD} + 30", Status.UNINITIALIZED_READ, "column 30 of tensor memory"),
        (
            LOAD,
            f"{LOAD} + 32",
            Status.OUT_OF_BOUNDS,
            "column 32 of tensor memory: no tcgen05.alloc",
        ),
        ("multiply(d,", "multiply(d + 28,", Status.OUT_OF_BOUNDS, "column 32 of tensor memory"),
        (LOAD, "d + ((warp ^ 1) << 21)", Status.OUT_OF_BOUNDS, "it reaches lanes 0 to 31"),
        (LOAD, f"{LOAD} + (8 << 16)", Status.OUT_OF_BOUNDS, "from a multiple of 16 on"),
        ("multiply(d,", "multiply(d + (32 << 16),", Status.OUT_OF_BOUNDS, "with 64 rows at 16"),
        (LOAD, f"{LOAD} + (t & 1)", Status.BARRIER_DIVERGENCE, "different addresses"),
        ("{ " + FREE + " }", "{}", Status.CRASH, "32 columns of tensor memory that it has not"),
        (FREE, f"{FREE} {FREE}", Status.CRASH, "tcgen05.dealloc of 32 columns at 0x00000000"),
        (ALLOC, ALLOC.replace("COLUMNS", "48"), Status.CRASH, "powers of 2 from 32 to 512"),
        (ALLOC, ALLOC + ALLOC.replace("COLUMNS", "64"), Status.CRASH, "none may be larger"),
        (ALLOC, f"if (t < 16) {ALLOC}", Status.BARRIER_DIVERGENCE, "a matrix instruction"),
        ("4u << 24", "2u << 24", Status.CRASH, "has no M of 64 or 128"),
        ("1u << 17 |", "", Status.CRASH, "has no N of 8 to 256"),
        ("1u << 10", "3u << 10", Status.CRASH, "has types that its kind does not have"),
        ("1u << 10 |", "", Status.UNSUPPORTED_ON_SIM, "one factor of f16 and one of bf16"),
        ("4u << 24", "1u << 2 | 4u << 24", Status.UNSUPPORTED_ON_SIM, "a sparse matrix"),
        ("| 1ull << 46", "", Status.CRASH, "must have 0b001 in bits 46-48"),
        ("1ull << 46", "1ull << 46 | 1ull << 61", Status.UNSUPPORTED_ON_SIM, "32 bytes at once"),
        ("matrix(b),", "matrix(b) + 8,", Status.OUT_OF_BOUNDS, "load of `b` at byte 256 of 256"),
    ],
)
def test_what_leads_elsewhere_is_told(
    sim: Sim, right: str, wrong: str, status: Status, says: str
) -> None:
    source = KERNEL.replace(right, wrong, 1)
    assert source != KERNEL
    assert says in sim.fault(kernel_case(source), status).message


def test_columns_that_no_warp_gives_back_are_waited_for_in_vain(sim: Sim) -> None:
    every = _changed(("COLUMNS = 32", "COLUMNS = 512"))
    np.testing.assert_array_equal(sim.outputs(kernel_case(every))["out"], kernel_sums())
    twice = every.replace(ALLOC, ALLOC + ALLOC)
    found = sim.fault(kernel_case(twice), Status.BARRIER_DIVERGENCE)
    assert "for columns of tensor memory" in found.message


def test_warp_goes_on_once_another_one_has_given_its_columns_back(sim: Sim) -> None:
    again = ALLOC.replace("&place", "&other")
    source = _changed(
        ("COLUMNS = 32", "COLUMNS = 512"),
        ("__shared__ u32 place;", "__shared__ u32 place, other;"),
        ("  float r[8];", f"  if (warp == 4) {{ {again} }}\n  float r[8];"),
        ("// frees", "\nif (warp == 4) {" + FREE.replace("(d)", "(other)") + "}"),
        ("  if (warp == 0) { " + FREE, "  if (warp == 0) { " + FREE),
        ("i += 128) a[i]", "i += blockDim.x) a[i]"),
        ("b[t] = ", "if (t < 128) b[t] = "),
        ('  asm volatile("tcgen05.ld', '  if (warp < 4) asm volatile("tcgen05.ld'),
        (f"  {WAIT_LOADS}\n  for", f"  {WAIT_LOADS}\n  if (warp < 4) for"),
        (
            "  __syncthreads();\n  if (warp == 0)",
            '  asm volatile("bar.sync 1, 128;" ::: "memory");\n  if (warp == 0)',
        ),
    )
    source = source.replace('asm volatile("bar.sync 1', 'if (warp < 4) asm volatile("bar.sync 1')
    found = sim.outputs(kernel_case(source, 160))["out"]
    np.testing.assert_array_equal(found, kernel_sums())


def test_permit_that_was_given_up_allocates_no_more(sim: Sim) -> None:
    given_up = (
        f'asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"); {ALLOC}'
    )
    found = sim.fault(kernel_case(_changed((ALLOC, given_up))), Status.CRASH)
    assert "behind tcgen05.relinquish_alloc_permit" in found.message


def test_address_that_no_barrier_orders_is_a_race(sim: Sim) -> None:
    source = _changed(("  __syncthreads();\n  const u32 d", "  const u32 d"))
    assert sim.fault(kernel_case(source), Status.DATA_RACE)


OTHER = (
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;",
    "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0}, [%1];",
    "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%0}, [%1];",
    "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%0}, [%1];",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1], 4;",
    "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%0, %1}, %2, [%1];",
    "tcgen05.ld.sync.aligned.32x32b.x1.unpack::16b.b32 {%0}, [%1];",
    "tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %2, %2, [%1], %1, p;",
    "tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %2, %2, %1, p;",
    "tcgen05.mma.cta_group::2.kind::f16 [%0], %2, %2, %1, p;",
    "tcgen05.mma.cta_group::1.kind::f16.ashift [%0], [%1], %2, %1, p;",
    "tcgen05.mma.cta_group::1.kind::i8 [%0], %2, %2, %1, p, 3;",
    "tcgen05.mma.cta_group::1.kind::f16 [%0], %2, %2, %1, p, 16;",
    "tcgen05.mma.cta_group::1.kind::f16 [%0], %2, %2, %1, p, \N{SUPERSCRIPT TWO};",
    "tcgen05.mma.cta_group::1.kind::f16 [%0], %2, %2, %1, {%0, %1}, p;",
    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%0], %2, %2, %1, [%0], [%0], p;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block16 [%0], %2, %2, %1, [%0], [%0], p;",
    "tcgen05.cp.cta_group::1.4x256b [%0], %2;",
    "tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32 [%0], %2;",
    "tcgen05.shift.cta_group::1.down [%0];",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];",
)


@pytest.mark.parametrize("text", OTHER)
def test_other_forms_are_left(text: str) -> None:
    statement = f"{{.reg .pred p; {text}}}"
    source = f'void f() {{ asm volatile("{statement}" : "+r"(a) : "r"(b), "l"(c)); }}'
    assert lower_ptx(source) == source
    assert unknown_instruction(statement) == text.split()[0]
