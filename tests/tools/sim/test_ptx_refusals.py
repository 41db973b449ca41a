"""Inline PTX that could be taken for something else than nvcc takes it for stays as it is."""

import numpy as np
import pytest

from kopt.tools.sim.ptx.lowering import lower_ptx
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase

MEMBAR = 'asm volatile("membar.gl;" :::);'
MANY = 20_000


def _run(sim: Sim, body: str) -> list[int]:
    """Return what each of 32 threads leaves in `out`."""
    source = f'extern "C" __global__ void k(unsigned* out) {{\n{body}\n}}'
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)}, block=(32, 1, 1))
    return [int(one) for one in sim.outputs(case)["out"]]


@pytest.mark.parametrize(
    "text",
    [
        "createpolicy;",
        "cp.async.ca.shared.global;",
        "cp.async.ca.shared.global [%0], [%1];",
        "atom.add.u32;",
        "atom.add.u32 %0;",
        "red.add.u32;",
        "add.f32x2;",
        "fma.f32x2;",
        "popc.b32;",
        "cvt.ftz.f32 %0, %1;",
        "membar.gl",
        "{ membar.gl;",
        "membar.gl; }",
        "L: membar.gl; L: membar.gl;",
        "fence.proxy.async.global;",
        "cp.async.cg.shared.global [%0], [%1], 4;",
        "{.reg .pred p; cp.async.cg.shared.global [%0], [%1], 16, p;}",
        "{.reg .pred p; add.u32 %0, %0, p;}",
        "{.reg .b32 p; @p membar.gl;}",
    ],
)
def test_text_that_ptxas_refuses_or_takes_otherwise_stays(text: str) -> None:
    source = f'void f() {{ asm volatile("{text}" : "+r"(a) : "l"(b)); }}'
    assert lower_ptx(source) == source


@pytest.mark.parametrize(
    "source",
    [
        f"#define F(asm) {MEMBAR}",
        f"#define F(volatile) {MEMBAR}",
        f"#define F\\\n(volatile) {MEMBAR}",
        '#define TID(x) asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x))',
        f"#define __threadfence() 0\n{MEMBAR}",
        'asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(({ if (b) break; 1; })));',
        'asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(sizeof("a  b")));',
        'asm volatile("mov.u32 %0, %1;"\n : "=r"(a)\n : "r"(__LINE__));',
        'asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(b /\\\n* c */));',
    ],
)
def test_statement_that_a_macro_or_its_place_changes_stays(source: str) -> None:
    assert lower_ptx(source) == source


def test_macros_of_other_names_change_nothing() -> None:
    lowered = lower_ptx(f"#define LARGER(x, y) ((x) > (y) ? (x) : (y))\n{MEMBAR}")
    assert "__threadfence()" in lowered and "asm" not in lowered


@pytest.mark.parametrize(
    "source",
    first_quick(
        [
            "asm(" * MANY,
            'asm("" : "r"(' * MANY + "))" * MANY,
            'asm volatile("' + "a" * 5 * MANY + '" :::);',
        ],
        1,
    ),
    ids=["unclosed", "nested", "long"],
)
def test_long_source_that_is_no_ptx_stays(source: str) -> None:
    """Time that grows with the square of the length would be minutes here."""
    assert lower_ptx(source) == source


def test_operand_is_evaluated_once_and_before_the_instructions(sim: Sim) -> None:
    body = (
        "unsigned a[2] = {5, 7}; int n = 0;\n"
        'asm volatile("add.u32 %0, %0, 1;" : "+r"(a[n++]));\n'
        "unsigned b[2] = {0, 0}; int i = 0;\n"
        'asm volatile("mov.u32 %0, 1; mov.u32 %1, 9;" : "=r"(i), "=r"(b[i]));\n'
        "out[threadIdx.x] = a[0] * 1000 + n * 100 + b[0];"
    )
    assert set(_run(sim, body)) == {6109}


def test_spliced_expression_is_what_the_compiler_sees(sim: Sim) -> None:
    body = (
        "unsigned a = 5, r;\n"
        'asm volatile("mov.u32 %0, %1;" : "=r"(r) : "r"(-\\\n-a));\n'
        "out[threadIdx.x] = r;"
    )
    assert set(_run(sim, body)) == {4}


def test_macro_goes_on_behind_a_comment_with_an_end_of_line(sim: Sim) -> None:
    macro = '#define STEP asm volatile("membar.gl;" /*\n*/ :::); sum += 1;'
    body = f"unsigned sum = 0;\n{macro}\nSTEP STEP\nout[threadIdx.x] = sum;"
    assert set(_run(sim, body)) == {2}


def test_register_that_a_guard_leaves_unwritten_is_not_zero(sim: Sim) -> None:
    body = (
        "unsigned r = 1;\n"
        'asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; @p mov.u32 %0, 0;}"'
        ' : "=r"(r) : "r"(threadIdx.x));\n'
        "out[threadIdx.x] = r == 0;"
    )
    assert _run(sim, body) == [0] + [1] * 31
