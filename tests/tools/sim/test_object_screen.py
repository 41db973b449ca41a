"""What is read off g++'s output before it runs: accesses that no hook sees, assembly, widths."""

import numpy as np
import pytest

from kopt.tools.sim.object_screen import inline_assembly_line, unhooked_line
from kopt.tools.sim.program import build_program
from kopt.tools.sim.program_facts import SimProgram
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("[candidate.cu:7:3] _6 = f ([candidate.cu:7:5] *_2);", True),
        ("[candidate.cu:7:3] *_6 = f (_2);", True),
        ("[candidate.cu:7:3] _6 = S::operator+ (_8, MEM[(const struct S &)_7]);", True),
        ("[candidate.cu:7:3] f (local, x_3->y); [tail call]", True),
        ("[candidate.cu:7:3] s = f (3);", True),
        ("[candidate.cu:7:3] *_6 = f (g (_2), (int) 3);", True),
        ("[candidate.cu:7:3] _6 = f ((int) *_2, 3);", True),
        ("[candidate.cu:7:3] f (3, 4, *_2);", True),
        ("[candidate.cu:7:3] f (s.part);", True),
        ("[x.h:7:3] f (*_2); [must tail call]", True),
        ("[candidate.cu:7:3 discrim 2] f (*_2);", True),
        ("[candidate.cu:7:3] f (local.part, 4);", False),
        ("[candidate.cu:7:3] f (&*_2, local);", False),
        ("[candidate.cu:7:3] f (&*_2);", False),
        ("[candidate.cu:7:3] return *_2;", False),
        ("[candidate.cu:7:3] _6 = .UBSAN_CHECK_ADD (*_2, 1);", False),
        ("[candidate.cu:7:3] switch (*_2);", False),
        ("[candidate.cu:7:3] __assert_fail (&s[0]);", False),
        ("[candidate.cu:7:3] local = f (_2);", False),
        ("[candidate.cu:7:3] *_6 = _2;", False),
        ("[candidate.cu:7:3] if (_6 != *_2)", False),
        ("[candidate.cu:7:3] __builtin___tsan_func_entry (_38);", False),
        ("[candidate.cu:7:3] __builtin_memset (_5, 0, 33);", True),
        ("[candidate.cu:7:3] __builtin_memcpy (_5, &local, _6);", False),
        ("[candidate.cu:7:3] __builtin_memset (&local, 0, 33);", False),
        ("[x.h:7:3] __builtin_memset (_5, 0, 33);", False),
    ],
)
def test_accesses_without_a_hook_are_seen_in_gccs_dump(statement: str, found: bool) -> None:
    dump = f";; Function k (k)\n  struct S local;\n  static struct S s;\n  {statement}\n"
    assert unhooked_line(dump) == (7 if found else None)


def test_shared_variables_are_those_of_the_function_at_hand() -> None:
    declared, begun = "  static struct S s;\n", ";; Function k (k)\n"
    dump = f";; Function f (f)\n{declared}{begun}  [candidate.cu:7:3] f (s);\n"
    assert unhooked_line(dump) is None
    assert unhooked_line(dump.replace(begun, "")) == 7


def test_an_access_without_a_line_is_told_at_the_first() -> None:
    assert unhooked_line(";; Function k (k)\n  f (*_2);\n") == 1


def test_inline_assembly_has_the_last_line_of_the_candidate_before_it() -> None:
    text = """
    .file 1 "runtime.h"
    .file 2 "candidate.cu"
    .loc 2 11 5
    .loc 1 99 1
#APP
    .loc 2 12 5
"""
    assert inline_assembly_line(text) == 11
    assert inline_assembly_line(text.replace(".loc 2 11", ".loc 1 11")) == 1
    assert inline_assembly_line(text.replace("candidate.cu", "device.h")) == 1
    assert inline_assembly_line(text.replace("#APP", "#NO_APP")) is None


@pytest.mark.parametrize(
    ("statement", "narrowest"),
    first_quick(
        [
            ("*(char*)out = 1;", 1),
            ("*(short*)out = 1;", 2),
            ("out[0] = 1;", 4),
            ("*(double*)out = 1;", 4),
            ("atomicAdd(out, 1);", 1),
            ("memcpy(out, out + 4, 3);", 1),
        ],
        3,
    ),
)
def test_cells_of_scratch_are_as_fine_as_the_narrowest_access(
    sim: Sim, statement: str, narrowest: int
) -> None:
    source = f'extern "C" __global__ void k(int* out) {{ {statement} }}'
    built = build_program(
        SimCase(source, outputs={"out": np.zeros(32, np.int32)}).program, sim.settings
    )
    assert isinstance(built, SimProgram)
    assert built.narrowest_access_bytes == narrowest
