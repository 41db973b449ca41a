"""Inline PTX on the simulator: accesses are checked, groups exchange, the unknown is refused."""

from typing import Any

import numpy as np
import pytest

from kopt.kernels.status import Status
from kopt.tools.sim.ptx.lowering import lower_ptx
from kopt.tools.sim.refusals import explain_assembly
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase, line_of

KERNEL = 'extern "C" __global__ void k'
WAIT = """
    asm volatile(
        "{\\n\\t.reg .pred P1;\\n"
        "LAB_WAIT:\\n\\t"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\\n\\t"
        "@P1 bra DONE;\\n\\t"
        "bra LAB_WAIT;\\n"
        "DONE:\\n\\t}"
        :: "r"(at), "r"(parity) : "memory");
"""


def _out(sim: Sim, body: str, threads: int = 32, before: str = "") -> np.ndarray[Any, Any]:
    source = f"{before}\n{KERNEL}(const unsigned* in, unsigned* out) {{\n{body}\n}}"
    inputs = {"in": np.arange(256, dtype=np.uint32).view(np.int32) * 7}
    outputs = {"out": np.zeros(256, np.int32)}
    case = SimCase(source, inputs=inputs, outputs=outputs, block=(threads, 1, 1))
    return sim.outputs(case)["out"]


@pytest.mark.parametrize(
    "load",
    first_quick(
        [
            "ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];",
            "ld.global.L1::no_allocate.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4+0];",
            "ld.v4.s32 {%0, %1, %2, %3}, [%4];",
            "{.reg .b64 pol; createpolicy.fractional.L2::evict_first.b64 pol, 1.0;"
            " ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], pol;}",
        ],
        2,
    ),
)
def test_vectors_are_loaded_and_stored(sim: Sim, load: str) -> None:
    body = (
        "unsigned a, b, c, d; const unsigned* from = in + 4 * threadIdx.x;\n"
        f'asm volatile("{load}" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(from));\n'
        'asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};"'
        ' :: "l"(out + 4 * threadIdx.x), "r"(d), "r"(c) : "memory");\n'
        'asm volatile("st.global.v2.b32 [%0+8], {%1, %2};"'
        ' :: "l"(out + 4 * threadIdx.x), "r"(b), "r"(a) : "memory");'
    )
    found = _out(sim, body).reshape(-1, 4)[:32]
    expected = (np.arange(128) * 7).reshape(-1, 4)[:, ::-1]
    np.testing.assert_array_equal(found, expected)


def test_narrow_elements_fill_their_registers_by_their_sign(sim: Sim) -> None:
    body = (
        "__shared__ signed char s[32]; s[threadIdx.x] = -1 - int(threadIdx.x);\n"
        "const unsigned at = __cvta_generic_to_shared(s + threadIdx.x); int a; unsigned b;\n"
        'asm volatile("ld.shared.s8 %0, [%1];" : "=r"(a) : "r"(at));\n'
        'asm volatile("ld.shared::cta.u8 %0, [%1];" : "=r"(b) : "r"(at));\n'
        "out[threadIdx.x] = a; out[32 + threadIdx.x] = b;"
    )
    found = _out(sim, body)
    np.testing.assert_array_equal(found[:32], -1 - np.arange(32))
    np.testing.assert_array_equal(found[32:64], 255 - np.arange(32))


LANES = range(32)


@pytest.mark.parametrize(
    ("shuffle", "sources"),
    first_quick(
        [
            ("bfly.b32 %0, %1, 5, 0x1f", [lane ^ 5 for lane in LANES]),
            ("idx.b32 %0, %1, 9, 0x1f", [9 for _ in LANES]),
            ("idx.b32 %0, %1, 1, 0x1c1f", [lane // 4 * 4 + 1 for lane in LANES]),
            ("up.b32 %0, %1, 3, 0x0", [lane if lane < 3 else lane - 3 for lane in LANES]),
            ("down.b32 %0, %1, 3, 0x181f", [lane + 3 if lane % 8 < 5 else lane for lane in LANES]),
        ],
        2,
    ),
)
def test_lanes_exchange_words(sim: Sim, shuffle: str, sources: list[int]) -> None:
    text = f"shfl.sync.{shuffle}, 0xffffffff;"
    run = f'unsigned r; asm volatile("{text}" : "=r"(r) : "r"(threadIdx.x));'
    assert list(_out(sim, f"{run}\nout[threadIdx.x] = r;")[:32]) == sources


@pytest.mark.slow  # a program of its own
def test_votes_reductions_and_leaders(sim: Sim) -> None:
    body = (
        "unsigned ballot, sum, leader, chosen;\n"
        'asm volatile("{.reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1;}"'
        ' : "=r"(ballot) : "r"(threadIdx.x));\n'
        'asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(threadIdx.x));\n'
        'asm volatile("{.reg .pred %%p; elect.sync %0|%%p, -1; selp.u32 %1, 1, 0, %%p;}"'
        ' : "=r"(leader), "=r"(chosen));\n'
        "out[threadIdx.x] = ballot; out[32 + threadIdx.x] = sum; out[64 + threadIdx.x] = leader;\n"
        "out[96 + threadIdx.x] = chosen;"
    )
    found = _out(sim, body).reshape(-1, 32)[:4]
    assert (set(found[0]), set(found[1]), set(found[2])) == ({31}, {496}, {0})
    np.testing.assert_array_equal(found[3], np.arange(32) == 0)


def test_atomics_add_exchange_and_compare(sim: Sim) -> None:
    body = (
        "__shared__ unsigned s[3]; if (threadIdx.x < 3) s[threadIdx.x] = 0;\n"
        'asm volatile("bar.sync 0;" ::: "memory");\n'
        "const unsigned at = __cvta_generic_to_shared(s); unsigned old;\n"
        'asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(at), "r"(threadIdx.x) : "memory");\n'
        'asm volatile("atom.shared.max.u32 %0, [%1+4], %2;"'
        ' : "=r"(old) : "r"(at), "r"(threadIdx.x) : "memory");\n'
        'asm volatile("atom.shared.cas.b32 %0, [%1+8], 0, 9;" : "=r"(old) : "r"(at) : "memory");\n'
        'asm volatile("barrier.sync.aligned 0;" ::: "memory");\n'
        "if (threadIdx.x < 3) out[threadIdx.x] = s[threadIdx.x];"
    )
    assert list(_out(sim, body)[:3]) == [496, 31, 9]


@pytest.mark.slow  # two programs
def test_asynchronous_copy_is_there_after_its_wait_and_not_before(sim: Sim) -> None:
    body = (
        "__shared__ __align__(16) unsigned s[128];\n"
        "const unsigned at = __cvta_generic_to_shared(s + 4 * threadIdx.x);\n"
        'asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"'
        ' :: "r"(at), "l"(in + 4 * threadIdx.x) : "memory");\n'
        'asm volatile("cp.async.commit_group;" ::: "memory");\n'
        'WAIT\n'
        "out[threadIdx.x] = s[4 * threadIdx.x + 1];"
    )  # fmt: skip
    waited = body.replace("WAIT", 'asm volatile("cp.async.wait_group 0;" ::: "memory");')
    np.testing.assert_array_equal(_out(sim, waited)[:32], (4 * np.arange(32) + 1) * 7)
    source = f"{KERNEL}(const unsigned* in, unsigned* out) {{\n{body.replace('WAIT', '')}\n}}"
    case = SimCase(source, inputs={"in": np.zeros(256, np.int32)},
                   outputs={"out": np.zeros(256, np.int32)}, block=(32, 1, 1))  # fmt: skip
    sim.fault(case, Status.UNINITIALIZED_READ)


@pytest.mark.slow  # a program of its own
def test_bulk_copy_lands_at_the_mbarrier_that_is_waited_for_in_a_loop(sim: Sim) -> None:
    body = (
        "__shared__ __align__(16) unsigned s[64]; __shared__ unsigned long long barrier;\n"
        "const unsigned to = __cvta_generic_to_shared(s);\n"
        "const unsigned at = __cvta_generic_to_shared(&barrier), parity = 0;\n"
        "if (threadIdx.x == 0) {\n"
        '  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(1));\n'
        '  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");\n'
        '  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"'
        ' :: "r"(at), "r"(256) : "memory");\n'
        '  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes'
        ' [%0], [%1], %2, [%3];" :: "r"(to), "l"(in), "r"(256), "r"(at) : "memory");\n'
        "}\n__syncthreads();\n" + WAIT + "out[threadIdx.x] = s[2 * threadIdx.x];"
    )
    np.testing.assert_array_equal(_out(sim, body)[:32], np.arange(32) * 14)


def test_access_out_of_bounds_is_told_with_the_line_of_the_statement(sim: Sim) -> None:
    source = (
        f"{KERNEL}(unsigned* out) {{\n"
        "  unsigned r = 0;\n"
        '  asm volatile("add.u32 %0, %0, 1;"\n'
        '               : "+r"(r));\n'
        '  asm volatile("st.global.u32 [%0], %1;" :: "l"(out + 8), "r"(r) : "memory");  // beyond\n'
        "}"
    )
    case = SimCase(source, outputs={"out": np.zeros(8, np.int32)}, block=(1, 1, 1))
    assert sim.fault(case, Status.OUT_OF_BOUNDS).line == line_of(source, "// beyond")


@pytest.mark.slow  # a program of its own
def test_macro_of_a_statement_works_in_each_place(sim: Sim) -> None:
    macro = '#define NEXT(to, from) asm("add.u32 %0, %1, 1;" \\\n  : "=r"(to) : "r"(from))'
    used = "unsigned a, b; NEXT(a, in[threadIdx.x]);\nif (a) NEXT(b, a); else b = 0;"
    body = f"{used}\nout[threadIdx.x] = b;"
    np.testing.assert_array_equal(_out(sim, body, before=macro)[:32], np.arange(32) * 7 + 2)


@pytest.mark.parametrize(
    "statement",
    [
        'asm volatile("bar.red.popc.u32 %0, 1, 64, p;" : "=r"(a));',
        'asm volatile("bar.arrive 1;");',
        'asm volatile("barrier.cluster.sync;");',
        'asm("mov.u64 %0, %%globaltimer;" : "=l"(t));',
        'asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};"'
        ' : "=f"(f) : "r"(a), "r"(a), "f"(f));',
        'asm("add.u32 %[to], %1, 1;" : [to] "=r"(a) : "r"(a));',
        'asm("bra elsewhere;");',
        'asm("add.u32 %0, %1, %2;" : "=r"(a) : "r"(a));',
        'asm("vadd.u32.u32.u32 %0, %1, %1;" : "=r"(a) : "r"(a));',
        'asm("add.rm.f32 %0, %1, %1;" : "=f"(f) : "f"(f));',
        'asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(t) : "r"(b));',
        'asm volatile("mbarrier.try_wait.shared::cluster.b64 %0, [%1], 1;" : "=l"(t) : "r"(b));',
        'asm("ld.global.u32 %0, [%1];" : "=r"(a) : "r"(b));',
        'asm volatile("st.u32 [%0], %1;" :: "r"(b), "r"(a));',
        'asm volatile("red.relaxed.cta.global.add.u32 [%0], %1;" :: "l"(p), "r"(a));',
        'asm volatile("st.release.cta.global.u32 [%0], %1;" :: "l"(p), "r"(a));',
        'asm volatile("{.reg .pred p; bar.red.xor.pred p, 1, 64, p;}");',
    ],
)
def test_what_is_not_known_stays_as_it_is(statement: str) -> None:
    assert lower_ptx(f"void f() {{ {statement} }}") == f"void f() {{ {statement} }}"


def test_statements_of_a_source_that_defines_the_word_stay() -> None:
    for name in ("asm", "volatile", "__asm__"):
        source = f'#define {name} nothing\nvoid f() {{ asm volatile("membar.gl;"); }}'
        assert lower_ptx(source) == source


def test_refused_instruction_is_named_beside_others_that_run(sim: Sim) -> None:
    source = (
        f"{KERNEL}(unsigned* out) {{\n"
        '  asm volatile("membar.gl;");\n'
        '  asm volatile("bar.arrive 1;");  // named\n'
        "  out[threadIdx.x] = 1;\n}"
    )
    case = SimCase(source, outputs={"out": np.zeros(64, np.int32)}, block=(64, 1, 1))
    found = sim.fault(case, Status.UNSUPPORTED_ON_SIM)
    assert "bar.arrive" in found.message and found.line == line_of(source, "// named")


def test_the_unknown_among_known_instructions_is_named() -> None:
    text = "{.reg .b16 a, b; mov.b32 {a, b}, %0; cvt.rn.f16x2.e4m3x2 %0, a;}"
    refused = explain_assembly(f'void f() {{ asm volatile("{text}" : "+r"(a)); }}', 1)
    assert "cvt.rn.f16x2.e4m3x2" in refused.message and "cuda_fp8.h" in (refused.hint or "")


def test_names_of_the_candidate_take_no_function_s_place(sim: Sim) -> None:
    before = """
namespace own {
__device__ float fmaf(float, float, float) { return 7; }
struct kopt_sim {};
__device__ unsigned twice(unsigned x) {
  const uint3 threadIdx{5, 5, 5};
  float y; unsigned lane;
  asm("fma.rn.f32 %0, %1, 0f40000000, 0f00000000;" : "=f"(y) : "f"(float(x)));
  asm("mov.u32 %0, %%tid.x;" : "=r"(lane));
  return unsigned(y) + lane + threadIdx.x - 5;
}
}
"""
    found = _out(sim, "out[threadIdx.x] = own::twice(in[threadIdx.x]);", before=before)
    assert list(found[:32]) == [15 * lane for lane in LANES]


def test_text_in_comments_and_strings_is_no_statement() -> None:
    source = '// asm volatile("membar.gl;");\nconst char* s = "asm volatile(\\"membar.gl;\\");";'
    assert lower_ptx(source) == source
