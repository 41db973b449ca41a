"""The screen on cubins of kernels that each do one thing a candidate may not."""

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import CubinFacts, read_cubin
from kopt.tools.cuda.cubin_screen import ASSERTS, NOT_INSPECTED, address_bank, screen_cubin
from kopt.tools.cuda.module_tables import may_name_library
from kopt.tools.cuda.sass import SassFunction, disassemble
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import cubin_of

pytestmark = pytest.mark.slow  # a compile each
BAD = """
#include <cstdio>
__device__ int counter;
extern "C" __global__ void state(int* o) { o[0] = atomicAdd(&counter, 1); }
extern "C" __global__ void prints(int* o) { printf("%d", o[0]); }
extern "C" __global__ void sleeps() { __nanosleep(100); }
extern "C" __global__ void traps(int* o) { if (o[0]) __trap(); }
extern "C" __global__ void timer(unsigned long long* o) {
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(o[0]));
}
extern "C" __global__ void cycles(long long* o) { o[0] = clock64(); }
"""
GOOD = """
#include <cooperative_groups.h>
__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
extern "C" __global__ void good(const float* x, float* y) {
  auto block = cooperative_groups::this_thread_block();
  y[threadIdx.x] = __sinf(x[threadIdx.x]) * table[threadIdx.x & 3];
  block.sync();
}
extern "C" __global__ void dependent(const float* x, float* y) {
  cudaGridDependencySynchronize();
  y[threadIdx.x] = x[threadIdx.x];
}
"""


def facts_and_functions(
    source: str, settings: Settings, toolchain: FoundToolchain, arch: str
) -> tuple[CubinFacts, tuple[SassFunction, ...]]:
    cubin = cubin_of(source, settings, arch)
    facts = read_cubin(cubin)
    functions = disassemble(cubin, toolchain, settings, address_bank(facts, source))
    assert functions is not None
    return facts, functions


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_each_bad_kernel_is_named_with_its_reason(
    settings: Settings, toolchain: FoundToolchain, arch: str
) -> None:
    screening = screen_cubin(*facts_and_functions(BAD, settings, toolchain, arch))
    messages = [entry.message for entry in screening.refused]
    for expected in (
        "the module calls vprintf",
        "kernel state writes variables of module scope",
        "kernel timer reads the global timer",
    ):
        assert [message for message in messages if message.startswith(expected)], expected
    assert all(entry.hint for entry in screening.refused)
    assert not [text for text in messages if text.startswith(("kernel cycles", "kernel traps"))]
    assert sorted(screening.flagged) == [
        "kernel cycles reads the cycle counter",
        "kernel sleeps contains a sleep",
        "kernel traps contains a trap or breakpoint: a launch that reaches it crashes",
    ]


def test_the_grid_barrier_of_cooperative_groups_is_not_refused(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    grid = GOOD.replace("block.sync();", "cooperative_groups::this_grid().sync();")
    screening = screen_cubin(*facts_and_functions(grid, settings, toolchain, "sm_90a"))
    assert screening.refused == ()


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_unused_library_objects_and_constant_tables_are_fine(
    settings: Settings, toolchain: FoundToolchain, arch: str
) -> None:
    facts, functions = facts_and_functions(GOOD, settings, toolchain, arch)
    assert facts.module_global_bytes > 0  # what cooperative groups leave behind
    screening = screen_cubin(facts, functions)
    assert (screening.refused, screening.flagged) == ((), ())
    waits = {function.name: function.waits_for_producer for function in functions}
    assert waits == {"dependent": True, "good": False}


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "declared",
    [
        "__device__ int kept[2]; __constant__ int* const where = kept;",
        "__device__ int kept; __constant__ struct { int n; int* p; } box = {0, &kept};\n"
        "#define where box.p",
        "__constant__ int kept[2]; __constant__ const int* where = kept;",
    ],
)
def test_an_address_in_a_constant_does_not_hide_module_state(
    declared: str, settings: Settings, arch: str
) -> None:
    source = f'{declared}\nextern "C" __global__ void hidden(int* o) {{ o[0] = *where; }}'
    facts = read_cubin(cubin_of(source, settings, arch))
    (refusal,) = screen_cubin(facts, ()).refused
    assert refusal.message.startswith("the module stores the address of kept: it writes variables")


def test_without_instructions_used_state_is_still_refused(settings: Settings) -> None:
    screening = screen_cubin(read_cubin(cubin_of(BAD, settings)), None)
    messages = [entry.message for entry in screening.refused]
    assert [message for message in messages if "module scope" in message]
    assert screening.flagged == (NOT_INSPECTED,)


def test_without_instructions_a_plain_module_passes_and_says_so(settings: Settings) -> None:
    plain = 'extern "C" __global__ void k(float* o) { o[threadIdx.x] = 1.0f; }'
    screening = screen_cubin(read_cubin(cubin_of(plain, settings)), None)
    assert screening.refused == ()
    assert screening.flagged == (NOT_INSPECTED,)


TABLES = """
__device__ constexpr float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 9};
extern "C" __global__ void table(const int* x, float* y) {
  for (int i = 0; i < 4; ++i) y[4 * threadIdx.x + i] = numbers[(x[threadIdx.x] >> i) & 7];
}
extern "C" __global__ void local(const int* x, float* y) {
  static constexpr float halves[8] = {1, 2, 3, 4, 5, 6, 7, 9};
  y[threadIdx.x] = halves[x[threadIdx.x] & 7];
}
extern "C" __global__ void reduced(const double* x, double* y) {
  y[threadIdx.x] = sin(x[threadIdx.x]);
}
"""


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_tables_that_are_only_read_are_no_state(
    arch: str, settings: Settings, toolchain: FoundToolchain
) -> None:
    facts, functions = facts_and_functions(TABLES, settings, toolchain, arch)
    assert facts.library_slots  # sin() has a table of its own
    assert screen_cubin(facts, functions).refused == ()


@pytest.mark.parametrize(
    "statement",
    [
        "const_cast<float*>(numbers)[x[0]] = 2.0f; y[0] = numbers[x[1]];",
        "y[0] = atomicAdd(&sum, 1.0f);",
        "float* p = x[0] > 3 ? &sum : y; *p += 1.0f;",
        "*reinterpret_cast<const float**>(y) = numbers + x[0];",
    ],
)
def test_a_store_through_an_address_of_module_scope_is_state(
    statement: str, settings: Settings, toolchain: FoundToolchain
) -> None:
    source = (
        "__device__ float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 9}; __device__ float sum;\n"
        f'extern "C" __global__ void writes(const int* x, float* y) {{ {statement} }}'
    )
    screening = screen_cubin(*facts_and_functions(source, settings, toolchain, "sm_90a"))
    (refusal,) = screening.refused
    assert "writes variables of module scope" in refusal.message


@pytest.mark.parametrize(
    ("source", "may"),
    [
        ("float y = sinf(x);", False),
        ("extern unsigned __cudart_i2opi_f[];", True),
        ("extern unsigned __cuda\\\nrt_i2opi_f[];", True),
        ("#define JOIN(a, b) a##b", True),
        ('asm("mov.u64 %0, t;" : "=l"(p));', True),
    ],
)
def test_a_source_that_may_name_the_library_s_tables(source: str, may: bool) -> None:
    assert may_name_library(source) == may


def test_assertions_are_flagged(settings: Settings, toolchain: FoundToolchain) -> None:
    source = (
        "#include <cassert>\n"
        'extern "C" __global__ void asserts(int* x) { assert(x[0] > 0); x[0] = 1; }'
    )
    screening = screen_cubin(*facts_and_functions(source, settings, toolchain, "sm_90a"))
    assert screening.refused == ()
    assert ASSERTS in screening.flagged
