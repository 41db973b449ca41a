"""The appended type assertions, decided by a real compiler: g++, and nvcc where it is installed."""

import shutil
import subprocess
from importlib.metadata import files as distribution_files
from pathlib import Path

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.case import Case
from kopt.kernels.parameter_types import ASSERTIONS_FILE, type_assertions
from kopt.kernels.plan_resolver import resolve_plan
from support.tiny_problem import tiny_candidate, tiny_problem

pytestmark = pytest.mark.slow  # two compilers for each
HEADER = """\
/* kopt: 1
family: other
scratch: {sums: {dtype: int32, shape: B}, codes: {dtype: float8_e4m3fn, shape: B}}
tensor_maps: {x_map: {tensor: x, box: "1, 4"}}
launch:
  - {kernel: first, grid: B, block: 32, args: [x, weight, sums, x_map, H, {int64: B * H}]}
  - {kernel: second, grid: B, block: 32, args: [codes, out, scale]}
*/
"""
FIRST = (
    "const float* __restrict__ x, const __nv_bfloat16* w, int32_t* sums, const CUtensorMap m,"
    " int H, int64_t n"
)
SECOND = "__nv_fp8_e4m3* codes, float* __restrict__ out, const float scale"

# What the CUDA headers declare, in as many words: fast to compile, and the same names.
STAND_IN = """
#include <stdint.h>
#define __global__
#define __device__
struct __nv_bfloat16 { unsigned short x; };
struct __nv_bfloat162 { __nv_bfloat16 x, y; };
struct __half2 { unsigned short x, y; };
struct uint4 { unsigned x, y, z, w; };
struct odd { unsigned char bytes[3]; };
struct __nv_fp8_e4m3 { unsigned char x; };
typedef unsigned char __nv_fp8_storage_t;
typedef struct alignas(64) CUtensorMap_st { uint64_t opaque[16]; } CUtensorMap;
"""


def assertions(root: Path, header: str = HEADER) -> str:
    problem = tiny_problem(root)
    case = Case(problem, problem.workload("b8xh64"), tiny_candidate(header))
    plan = resolve_plan(case, gpu_for_arch("sm_90a")).plan
    assert plan is not None, case.parsed.diagnostics
    return type_assertions(plan, problem)


def kernels(first: str = FIRST, second: str = SECOND) -> str:
    return f"""
extern "C" __global__ void first({first}) {{}}
extern "C" __global__ void second({second}) {{}}
"""


def errors(source: str, *options: str) -> list[str]:
    """Return the error lines of g++ for a C++17 source."""
    command = ["g++", "-std=c++17", "-fsyntax-only", "-x", "c++", *options, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if " error: " in line]


def test_exact_types_pass(tmp_path: Path) -> None:
    assert errors(STAND_IN + kernels() + assertions(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("__nv_fp8_e4m3* codes", "__nv_fp8_storage_t* codes"),
        ("__nv_fp8_e4m3* codes", "uint8_t* codes"),
        ("int H", "long long H"),
        ("int H", "const long H"),
        ("int64_t n", "long long n"),
        ("int32_t* sums", "int* const __restrict__ sums"),
        ("int32_t* sums", "const int32_t* sums"),
        ("float* __restrict__ out", "const float* out"),
        ("float* __restrict__ out", "uint4* out"),
        ("float* __restrict__ out", "void* out"),
        ("float* __restrict__ out", "unsigned* out"),
        ("float* __restrict__ out", "char* out"),
        ("const __nv_bfloat16* w", "const void* __restrict__ w"),
        ("const __nv_bfloat16* w", "const unsigned short* w"),
        ("const __nv_bfloat16* w", "const __nv_bfloat162* w"),
        ("int H", "unsigned H"),
        ("int H", "uint64_t H"),
        ("int64_t n", "uint64_t n"),
    ],
)
def test_other_spellings_of_a_type_pass(tmp_path: Path, old: str, new: str) -> None:
    source = kernels(FIRST.replace(old, new), SECOND.replace(old, new))
    assert errors(STAND_IN + source + assertions(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "const float* __restrict__ x",
            "float* x",
            "1, the tensor 'x' (in, pointer to float32), must",
        ),
        ("const float* __restrict__ x", "const int* x", "the tensor 'x' (in,"),
        ("const __nv_bfloat16* w", "const short* w", "must be const __nv_bfloat16* (or a pointer"),
        ("const __nv_bfloat16* w", "uint4* w", "must be const __nv_bfloat16*"),
        ("const __nv_bfloat16* w", "const __half2* w", "must be const __nv_bfloat16*"),
        ("const __nv_bfloat16* w", "const float* w", "must be const __nv_bfloat16*"),
        ("const __nv_bfloat16* w", "const odd* w", "must be const __nv_bfloat16*"),
        ("float* __restrict__ out", "unsigned short* out", "the tensor 'out'"),
        ("float* __restrict__ out", "int* out", "the tensor 'out'"),
        ("int32_t* sums", "float* sums", "the scratch buffer 'sums'"),
        ("const CUtensorMap m", "const void* m", "the tensor map 'x_map'"),
        ("const CUtensorMap m", "const CUtensorMap* m", "the tensor map 'x_map'"),
        ("int H", "float H", "the axis 'H'"),
        ("int64_t n", "int n", "'B * H' (int64), must be long long, int64_t"),
        ("float* __restrict__ out", "const int* out", "the tensor 'out' (out, pointer"),
        ("const float scale", "double scale", "'scale' (float32), must be float"),
        (
            "const float scale",
            "float scale, int more",
            "passes 3 arguments (codes, out, scale), the kernel has 4",
        ),
        (", int64_t n", "", "passes 6 arguments"),
    ],
)
def test_wrong_type_is_one_error_that_names_the_parameter(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in FIRST + SECOND
    source = kernels(FIRST.replace(old, new), SECOND.replace(old, new))
    found = errors(STAND_IN + source + assertions(tmp_path))
    assert len(found) == 1
    assert message in found[0]
    assert found[0].startswith(ASSERTIONS_FILE)
    assert "of the header" in found[0]


def test_a_struct_by_value_is_told_to_be_taken_apart(tmp_path: Path) -> None:
    source = STAND_IN + kernels("const uint4 all")
    found = errors(source + assertions(tmp_path))
    assert any("let the kernel take its members as parameters" in text for text in found)


@pytest.mark.parametrize(
    "declared",
    [
        "",
        'extern "C" __global__ void frist() {}',
        'namespace hidden { extern "C" __global__ void first(int) {} }',
        "template <int N> void first() {}",
    ],
)
def test_missing_kernel_is_one_error(tmp_path: Path, declared: str) -> None:
    source = f'{declared}\nextern "C" __global__ void second({SECOND}) {{}}'
    found = errors(STAND_IN + source + assertions(tmp_path))
    assert len(found) == 1
    assert "kernel 'first' (launched in line 6 of the header): the source has no" in found[0]


@pytest.mark.parametrize("ending", ["// ends in a comment", "// goes on \\", "#define LAST x \\"])
def test_last_line_of_the_candidate_cannot_swallow_the_assertions(
    tmp_path: Path, ending: str
) -> None:
    source = STAND_IN + kernels(FIRST.replace("int H", "float H")) + ending
    assert len(errors(source + assertions(tmp_path))) == 1


def test_macros_of_the_candidate_do_not_reach_the_assertions(tmp_path: Path) -> None:
    macros = "".join(f"#define {name} 4\n" for name in ("N", "T", "P", "list", "type", "count"))
    assert errors(STAND_IN + kernels() + macros + assertions(tmp_path)) == []


def test_a_tune_name_that_a_header_takes_is_refused(tmp_path: Path) -> None:
    header = HEADER.replace("scratch:", "tune: {FLT_DIG: [1], LANES: [-4]}\nscratch:", 1)
    source = STAND_IN + "#include <float.h>\n" + kernels() + assertions(tmp_path, header)
    (error,) = errors(source, "-w", "-DFLT_DIG=1", "-DLANES=-4")
    assert "the tune name FLT_DIG is also a macro of a header" in error


def test_candidate_without_cuda_headers_compiles(tmp_path: Path) -> None:
    header = HEADER.replace(", codes: {dtype: float8_e4m3fn, shape: B}", "").replace("codes, ", "")
    header = header.replace("weight, ", "").replace("x_map, ", "")
    source = """
#define __global__
#define __device__
extern "C" __global__ void first(const float*, int*, int, long) {}
extern "C" __global__ void second(float*, float) {}
"""
    assert errors(source + assertions(tmp_path, header)) == []


def cuda_include() -> Path:
    """Return the include folder of the CUDA header wheel, a base dependency."""
    for entry in distribution_files("nvidia-cuda-runtime") or ():
        if entry.name == "cuda_runtime.h":
            return Path(str(entry.locate())).parent
    raise AssertionError("nvidia-cuda-runtime has no cuda_runtime.h")


def real_source() -> str:
    headers = ("cstdint", "cuda_runtime.h", "cuda_bf16.h", "cuda_fp8.h", "cuda.h")
    includes = "".join(f"#include <{name}>\n" for name in headers)
    return includes + kernels(
        FIRST.replace("const CUtensorMap", "const __grid_constant__ CUtensorMap")
    )


def test_types_of_the_real_cuda_headers_pass(tmp_path: Path) -> None:
    include = cuda_include()
    options = (f"-I{include}", f"-I{include / 'cccl'}", "-D__grid_constant__=")
    assert errors(real_source() + assertions(tmp_path), *options) == []


def test_nvcc_decides_alike(tmp_path: Path) -> None:
    nvcc = cuda_include().parent / "bin" / "nvcc"
    compiler = str(nvcc) if nvcc.is_file() else shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not installed")
    good = real_source() + assertions(tmp_path)
    for name, source, message in (
        ("good.cu", good, ""),
        (
            "bad.cu",
            good.replace("int H", "float H"),
            "the axis 'H' (int32 or int64), must be int",
        ),
        ("lost.cu", good.replace("void first", "void frist"), "the source has no such function"),
    ):
        (tmp_path / name).write_text(source)
        command = [compiler, "-cubin", "-arch=sm_90a", "-std=c++17", "-o", "x.cubin", name]
        include = f"-I{cuda_include() / 'cccl'}"
        done = subprocess.run(
            [*command, include], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == (not message), done.stderr
        assert done.stderr.count("static assertion failed") == (1 if message else 0), done.stderr
        assert message in done.stderr
