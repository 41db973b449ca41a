"""One compile with its facts: identity, caching, failures."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_job import CompileContext
from kopt.tools.cuda.compile_unit import compile_unit
from kopt.tools.cuda.cubin_screen import NOT_INSPECTED
from support.compile_requests import job
from support.cuda_sources import FP4_QUANTIZE, SCALE
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # a compile each, without a cache

# Internal linkage makes the compiler derive symbol names from what it believes to be the path.
INTERNAL = """
namespace { __device__ __noinline__ float helper(float a) { return a * a + 1.0f; } }
static __device__ __noinline__ float other(float a) { return helper(a) * helper(a + 1.0f); }
extern "C" __global__ void k(float* o) { o[0] = other(o[1]) + other(o[2]) + helper(o[3]); }
"""
BOMB = """
template <int N, int M> struct Bomb { static constexpr int value =
    Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value; };
template <int M> struct Bomb<0, M> { static constexpr int value = M; };
extern "C" __global__ void k(int* o) { o[0] = Bomb<26, 0>::value; }
"""


def test_the_second_compile_is_the_first_one_s_record(nvcc: CompileContext) -> None:
    source = SCALE + "// second compile"
    first, second = compile_unit(job(source), nvcc), compile_unit(job(source), nvcc)
    assert (first.cached, second.cached) == (False, True)
    assert second.unit == first.unit
    (kernel,) = first.unit.kernels
    assert kernel.static_smem_bytes == 512
    assert kernel.instructions is not None
    assert kernel.instruction_mix["bar"] == 1


def test_defines_flags_and_architecture_make_other_entries(nvcc: CompileContext) -> None:
    base = job(SCALE)
    keys = {
        base.key(),
        replace(base, defines={"N": 1}).key(),
        replace(base, defines={"N": 2}).key(),
        replace(base, arch="sm_100a").key(),
        replace(base, fast_math=False).key(),
        replace(base, max_registers=32).key(),
        replace(base, plan_assertions=" ").key(),
        base.key("13.0"),
    }
    assert len(keys) == 8


def test_defines_reach_the_source(nvcc: CompileContext) -> None:
    source = 'extern "C" __global__ void __launch_bounds__(BLOCK) k(float* o) { o[BLOCK] = 1; }'
    outcome = compile_unit(job(source, BLOCK=192), nvcc)
    assert outcome.unit.kernels[0].max_threads_per_block == 192


def test_a_register_cap_reaches_the_compiler(nvcc: CompileContext) -> None:
    unbounded = FP4_QUANTIZE.replace("__launch_bounds__(256)", "")  # which would override the cap
    capped = replace(job(unbounded), max_registers=24)
    assert compile_unit(capped, nvcc).unit.kernels[0].registers_per_thread <= 24


def test_the_binary_does_not_depend_on_where_it_was_made(
    nvcc: CompileContext, settings: Settings, tmp_path: Path, shared_caches: Path
) -> None:
    here = compile_unit(job(INTERNAL), nvcc)
    home = share_caches(tmp_path / "another" / "home", shared_caches, ("sandbox",))
    elsewhere = Settings(home=home, sandbox="plain")
    there = compile_unit(job(INTERNAL), replace(nvcc, settings=elsewhere))
    assert not there.cached
    assert here.unit.cubin_sha256 == there.unit.cubin_sha256
    assert here.entry is not None
    assert str(settings.home).encode() not in here.entry.cubin_path.read_bytes()


def test_a_failed_compile_is_remembered_with_its_log(nvcc: CompileContext) -> None:
    broken = job('extern "C" __global__ void k() { nonsense; }')
    first, second = compile_unit(broken, nvcc), compile_unit(broken, nvcc)
    assert first.unit.status == Status.COMPILE_ERROR
    assert (second.cached, second.unit) == (True, first.unit)
    assert second.entry is not None
    assert "nonsense" in second.entry.log_path.read_text("utf-8")
    assert first.unit.cubin_sha256 is None


def test_a_ptxas_error_has_the_line_of_the_source(nvcc: CompileContext) -> None:
    source = """extern "C" __global__ void k(float* o) {
  o[0] = 1.0f;
  asm volatile("tcgen05.wait::ld.sync.aligned;");
}
"""
    unit = compile_unit(job(source), nvcc).unit
    assert unit.status == Status.COMPILE_ERROR
    (error,) = unit.diagnostics
    assert error.message.startswith("ptxas: Instruction 'tcgen05.wait' not supported")
    assert (error.line, error.excerpt) == (3, source.splitlines()[2])


def test_a_damaged_cubin_is_built_again(nvcc: CompileContext) -> None:
    source = SCALE + "// damaged"
    first = compile_unit(job(source), nvcc)
    assert first.entry is not None
    first.entry.cubin_path.write_bytes(b"damaged")
    again = compile_unit(job(source), nvcc)
    assert not again.cached
    assert again.unit.cubin_sha256 == first.unit.cubin_sha256
    assert compile_unit(job(source), nvcc).cached


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_a_template_bomb_is_stopped_and_not_remembered(
    compiler: str, nvcc: CompileContext, nvrtc: CompileContext
) -> None:
    context = replace({"nvcc": nvcc, "nvrtc": nvrtc}[compiler], wall_s=1.0)
    for _ in range(2):
        outcome = compile_unit(job(BOMB), context)
        assert outcome.unit.status == Status.TIMEOUT
        assert (outcome.entry, outcome.cached) == (None, False)
        assert "1 s" in outcome.unit.diagnostics[0].message


def test_a_source_that_ends_inside_a_brace_is_the_source_s_error(nvcc: CompileContext) -> None:
    open_brace = replace(
        job('extern "C" __global__ void k(int* o) { if (o[0]) {'),
        plan_assertions='\n\n#line 1 "launch_plan"\ntemplate <class T> struct A {};\n',
    )
    unit = compile_unit(open_brace, nvcc).unit
    assert unit.status == Status.COMPILE_ERROR
    assert any("open brace" in (entry.hint or "") for entry in unit.diagnostics)
    assert all(entry.file is None for entry in unit.diagnostics)


def test_without_nvdisasm_plain_kernels_are_counted_all_the_same(nvcc: CompileContext) -> None:
    blind = replace(nvcc, toolchain=replace(nvcc.toolchain, nvdisasm=None))
    assert (
        compile_unit(job(SCALE), blind).unit.kernels == compile_unit(job(SCALE), nvcc).unit.kernels
    )


def test_what_only_nvdisasm_can_read_is_unavailable_without_it_not_zero(
    nvcc: CompileContext,
) -> None:
    blind = replace(nvcc, toolchain=replace(nvcc.toolchain, nvdisasm=None))
    source = 'extern "C" __global__ void k(long long* o) { o[0] = clock64(); }'
    unit = compile_unit(job(source), blind).unit
    assert unit.status == Status.PASSED
    assert unit.kernels[0].instructions is None
    assert unit.kernels[0].instruction_mix == {}
    assert unit.producer_waits is None
    assert unit.flagged == (NOT_INSPECTED,)


COMPILE_ONCE = """
import json, sys
from pathlib import Path
from kopt.config.settings import Settings
from kopt.tools.cuda.compile_job import CompileContext, CompileJob
from kopt.tools.cuda.compile_unit import compile_unit
from kopt.tools.cuda.toolchain import find_toolchain
settings = Settings(home=Path(sys.argv[1]))
context = CompileContext("nvcc", find_toolchain(settings), settings)
print("ready", flush=True)
sys.stdin.readline()
source = 'extern "C" __global__ void together(float* o) { o[0] = 1.0f; }'
outcome = compile_unit(CompileJob(source=source, plan_assertions="", arch="sm_90a"), context)
print(json.dumps([outcome.cached, outcome.unit.cubin_sha256]))
"""


def test_of_several_processes_one_compiles_and_all_get_the_same(settings: Settings) -> None:
    command = [sys.executable, "-P", "-c", COMPILE_ONCE, str(settings.home)]
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=settings.home,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    answers = [process.communicate("go\n", timeout=120)[0] for process in processes]
    results = [json.loads(answer) for answer in answers]
    assert sorted(cached for cached, _ in results) == [False, True, True, True]
    assert len({digest for _, digest in results}) == 1
