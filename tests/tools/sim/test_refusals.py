"""What a refusal of the simulator says: the line, the construct, and what to write instead."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from kopt.tools.sim.refusals import explain_assembly, parse_messages
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase

KERNEL = 'extern "C" __global__ void k(float* out)'


@pytest.mark.parametrize(
    ("statement", "instruction", "instead"),
    [
        ('asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));', "ex2.approx.ftz.f32", "exp2f(x)"),
        (
            'asm volatile("{.reg .pred p, q; bar.red.xor.pred q, 0, p;}");',
            "bar.red",
            "__syncthreads_count(x)",
        ),
        ('asm volatile("bar.sync 0, 64, 3;");', "bar.sync 0", "write bar.sync NUMBER, THREADS"),
        ('asm("{\\n .reg .b32 r;\\n prmt.b32 r, %1;\\n}" : "=r"(y));', "prmt.b32", "__byte_perm"),
        (
            'asm volatile("ld.global.nc.L1::no_allocate.v4.u32"\n  " {%0}, [%1];" :: "l"(p));',
            "ld.global.nc.L1::no_allocate.v4.u32",
            "<kopt/global_access.cuh>",
        ),
        ('asm volatile("@p red.global.add.f32 [%0], %1;" ::);', "red.global.add.f32", "atomicAdd"),
        (
            'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::);',
            "cp.async.ca",
            "cp_async",
        ),
        (
            'asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::);',
            "mbarrier.init",
            "<kopt/mbarrier",
        ),
        ('asm volatile("wgmma.mma_async.sp.sync.aligned;");', "wgmma.mma_async.sp", "m64nNk16"),
        ('asm volatile("tcgen05.mma.sp;");', "tcgen05.mma.sp", "--device cuda:0"),
        (
            'asm volatile("prefetch.global.L2 [%0];" :: "l"(p));',
            "prefetch.global.L2",
            "leave it out",
        ),
        ('asm volatile("" ::: "memory");', "an asm statement", "--device cuda:0"),
    ],
)
def test_ptx_is_named_with_what_stands_in_for_it(
    statement: str, instruction: str, instead: str
) -> None:
    source = f"int before;\n{statement}\nint behind;"
    found = explain_assembly(source, 2)
    assert found.line == 2
    assert instruction in found.message
    assert instead in (found.hint or "")


def test_assembly_of_a_header_is_put_down_to_the_header() -> None:
    found = explain_assembly("int a;\n#include <cuda/barrier>\n", 1)
    assert (found.line, found.message) == (2, "not supported on the simulator: <cuda/barrier>")
    assert "__syncthreads()" in (found.hint or "")


def test_assembly_elsewhere_is_put_down_to_a_header_before_a_statement_of_the_source() -> None:
    statement, header = 'asm("prmt.b32 %0, %1;");', "#include <cuda/barrier>"
    assert "prmt.b32" in explain_assembly(f"{header}\n{statement}\n", 2).message
    assert "<cuda/barrier>" in explain_assembly(f"{statement}\n{header}\nint a;\n", 3).message
    of_a_macro = explain_assembly(f"#define MIX {statement}\nint a;\nMIX\n", 3)
    assert (of_a_macro.line, "prmt.b32" in of_a_macro.message) == (3, True)


def test_assembly_that_is_not_found_is_told_with_its_line() -> None:
    found = explain_assembly("int a;", 1)
    assert (found.line, found.message.partition(": ")[2]) == (1, "it has inline assembly")


def test_operands_that_the_cpu_lacks_are_told_once_a_line() -> None:
    source = 'asm("rcp.approx.f32 %0, %1;" : "=f"(a), "=f"(b));'
    error = "candidate.cu:1:9: error: output constraint {} must specify a single register"
    (found,) = parse_messages("\n".join(error.format(n) for n in range(4)), source)
    assert "rcp.approx.f32" in found.message


def test_names_of_the_simulator_are_not_proposed() -> None:
    said = (
        "candidate.cu:1:5: error: \u2018__vavgs4\u2019 was not declared in this scope;"
        " did you mean \u2018__vavgu4\u2019?"
    )
    (found,) = parse_messages(said, "y = __vavgs4(a, b);")
    assert found.message == "not supported on the simulator: it has no `__vavgs4`"
    assert "--device cuda:0" in (found.hint or "")


def test_an_error_in_a_header_names_the_line_that_led_there() -> None:
    said = (
        "candidate.cu:7:3:   required from here\n"
        "/x/cooperative_groups.h:9:1: error: static assertion failed: tiles of 1 to 32 threads"
    )
    (found,) = parse_messages(said, "")
    assert found.line == 7
    assert found.message.endswith(": tiles of 1 to 32 threads")


def test_an_error_in_a_header_that_no_line_led_to_names_the_header() -> None:
    (found,) = parse_messages("/usr/include/bits/math.h:9:1: error: #error no such CPU", "")
    assert (found.file, found.line) == ("math.h", None)
    assert found.message == "not supported on the simulator: no such CPU"


def test_five_errors_are_told() -> None:
    error = "candidate.cu:{0}:1: error: \u2018a{0}\u2019 was not declared in this scope"
    found = parse_messages("\n".join(error.format(line) for line in range(1, 9)), "")
    assert [(one.line, one.message[-4:]) for one in found] == [(n, f"`a{n}`") for n in range(1, 6)]


def test_text_that_is_no_message_is_told_by_its_first_line() -> None:
    (found,) = parse_messages("\ng++: fatal: killed\ncompilation ended\n", "")
    assert found.message == "g++ cannot compile it for the simulator: g++: fatal: killed"


@pytest.mark.parametrize(
    ("header", "instead"),
    first_quick(
        [
            ("cuda_awbarrier_primitives.h", "<kopt/mbarrier.cuh>"),
            ("cub/cub.cuh", "cooperative_groups::reduce"),  # seconds of g++
        ],
        1,
    ),
)
def test_headers_for_gpus_only_are_named(sim: Sim, header: str, instead: str) -> None:
    source = f"#include <{header}>\n{KERNEL} {{ out[threadIdx.x] = 1; }}"
    case = SimCase(source, outputs={"out": np.zeros(32, np.float32)})
    found = sim.fault(case, Status.UNSUPPORTED_ON_SIM)
    assert found.line == 1
    assert header in found.message
    assert instead in (found.hint or "")
