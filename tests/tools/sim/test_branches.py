"""The simulator compiles the branches that nvcc takes."""

from dataclasses import replace

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.source_macros import asks_the_compiler
from kopt.kernels.status import Status
from kopt.tools.sim.branches import choose_branches
from support.sim_run import Sim, SimCase, int32

KERNEL = 'extern "C" __global__ void k(int* out)'


def _value(sim: Sim, before: str, value: str = "value") -> int:
    source = f"{before}\n{KERNEL} {{ out[threadIdx.x] = {value}; }}"
    out = sim.outputs(SimCase(source, outputs={"out": np.zeros(32, np.int32)}))["out"]
    assert len(set(out.tolist())) == 1
    return int(out[0])


CONDITIONS = {
    "ifdef NOBODY_DEFINES_THIS": 2,
    "ifndef NOBODY_DEFINES_THIS": 1,
    "if NOBODY_DEFINES_THIS > 1": 2,
    "ifdef FLT_MAX": 2,  # the simulator's own headers have it
    "ifdef CUDA_VERSION": 2,
    "if __CUDA_ARCH__ == 1000": 1,
    "ifdef __CUDACC__": 1,
    "if defined(_MSC_VER) || defined(__HIPCC__)": 2,
    "if CUDART_VERSION < 12000\ncase N: v = 3;\n#elif __cplusplus >= 202002L": 1,
    "if 0\ndon't\n#elif 1 /* a\ncomment */": 1,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_what_nvcc_says(sim: Sim, condition: str) -> None:
    # One program has all conditions: nvcc's preprocessor and g++ see it once.
    cases = "".join(
        f"#{one}\ncase N: v = 1; break;\n#else\ncase N: v = 2; break;\n#endif\n".replace(
            "case N", f"case {number}"
        )
        for number, one in enumerate(CONDITIONS)
    )
    case = SimCase(
        f'extern "C" __global__ void k(int* out, int which) {{ int v = 0;\nswitch (which) {{\n'
        f"{cases}}}\nout[threadIdx.x] = v; }}",
        outputs={"out": np.zeros(32, np.int32)},
        scalars=(int32("which", list(CONDITIONS).index(condition)),),
    )
    assert set(sim.outputs(case)["out"].tolist()) == {CONDITIONS[condition]}


def test_branches_may_nest_and_define(sim: Sim) -> None:
    source = (
        "#ifdef ABSENT\n#ifdef __CUDACC__\n#define V 1\n#endif\n#else\n#ifdef __CUDACC__\n"
        "#define V 2 \\\n  + 40\n#else\n#define V 3\n#endif\n#endif"
    )
    assert _value(sim, source, "V") == 42


def test_names_of_the_target_have_nvccs_values(sim: Sim) -> None:
    assert _value(sim, "#include <cooperative_groups.h>", "__CUDA_ARCH__ + __CUDACC__") == 1001


def test_the_architecture_is_the_program_s(settings: Settings) -> None:
    source = f"#if __CUDA_ARCH__ < 1000\nold\n#else\nnew\n#endif\n{KERNEL} {{}}"
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)})
    chosen = choose_branches(replace(case.program, arch="sm_90a"), settings)
    assert chosen.text.split("\n")[1].strip() == "old"
    assert "new" not in chosen.text
    assert chosen.text.count("\n") == source.count("\n")


@pytest.mark.slow  # nvcc reads a large header
def test_a_definition_before_an_include_may_not_change_the_header(sim: Sim) -> None:
    header = "#define LANES 32\n#define less more\n#include <cooperative_groups/reduce.h>"
    source = f"{header}\n{KERNEL} {{}}"
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)})
    found = sim.fault(case, Status.UNSUPPORTED_ON_SIM)
    assert (found.line, found.hint) == (3, "put all includes first")
    assert "<cooperative_groups/reduce.h>" in found.message


@pytest.mark.slow  # nvcc reads two headers
def test_a_definition_that_no_header_uses_may_stand_before_it(sim: Sim) -> None:
    before = "#define LANES 32\n#include <cooperative_groups.h>\n#define MORE 2\n#include <cfloat>"
    assert _value(sim, before, "LANES + MORE") == 34


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("#define A 1\n#if A\n#endif", False),
        ("#if BLOCK > 4\n#endif", False),
        ("#if OTHER > 4\n#endif", True),
        ("#if A\n#endif\n#define A 1", True),
        ("#define A EOF\n#if A\n#endif", True),
        ("#define A\n#include <cfloat>", True),
        ("int a = __CUDA_ARCH__;", True),
        ('// #ifdef X\nauto s = "__CUDA_ARCH__";', False),
    ],
)
def test_nvcc_is_asked_about_what_is_not_the_file_s_own(source: str, asks: bool) -> None:
    assert asks_the_compiler(source, frozenset({"BLOCK"})) == asks
