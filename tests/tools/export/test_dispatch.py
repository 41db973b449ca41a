"""The choice between builds, compiled for the host and called with stubs in the builds' place."""

import subprocess
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.tools.cuda.include_tree import cuda_include_folders
from kopt.tools.export.device_code import device_code
from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.export.folder_files import folder_files, source_files
from kopt.tools.export.routes import plan_routes
from kopt.tools.export.signature import Signature
from support.exports import exported_tiny, write_files
from support.tiny_problem import BODY, tiny_problem, write_tiny_problem

HEADER = """\
/* kopt: 1
family: other
where: "H % 16 == 0 and B < 70000"
specialize: [H]
tune: {BLOCK: [128, 256]}
tune_where: ["BLOCK <= 4 * H", "B % (BLOCK // 128) == 0"]
scratch: {sums: {dtype: float32, shape: "B, 3"}}
variants:
  - when: B <= 8
    set: {BLOCK: 256}
    launch: [{kernel: scale_rows, grid: B, block: BLOCK, args: [x, out, H, scale]}]
  - when: "true"
    launch:
      - kernel: scale_rows
        grid: H // 16, B * BLOCK // 128
        block: BLOCK
        args: [x, out, H, scale]
*/
"""
BUILDS = """\
cudaError_t launch_variant1_h64(const Params&, cudaStream_t) { return launched_as("1"); }
cudaError_t launch_variant2_h256(const Params&, cudaStream_t) { return launched_as("2"); }
std::size_t scratch_bytes_variant1_h64(const Params&) { return 1; }
std::size_t scratch_bytes_variant2_h256(const Params& params) { return params.B; }
"""
UNSERVED = """\
/* kopt: 1
family: other
scratch: {sums: {dtype: float32, shape: "B, 3"}}
variants:
  - when: B <= 8
    launch: [{kernel: scale_rows, grid: B, block: 128, args: [x, out, H, scale]}]
  - when: B % 8 == 0
    launch: [{kernel: scale_rows, grid: B, block: 256, args: [x, out, H, scale]}]
  - when: "true"
    launch: [{kernel: scale_rows, grid: B, block: 64, args: [x, out, H, scale]}]
*/
"""
UNSERVED_BUILDS = """\
cudaError_t launch_variant1(const Params&, cudaStream_t) { return launched_as("1"); }
cudaError_t launch_variant2(const Params&, cudaStream_t) { return launched_as("2"); }
std::size_t scratch_bytes_variant1(const Params&) { return 1; }
std::size_t scratch_bytes_variant2(const Params& params) { return params.B; }
"""
MAIN = """\
#include <cstdio>
#include <cstdlib>
#include "scale_rows.h"
#include "routes.h"
namespace scale_rows {
const char* launched = "nothing";
cudaError_t launched_as(const char* build) { launched = build; return cudaSuccess; }
BUILDS}
int main(int, char** argv) {
  using namespace scale_rows;
  Params params;
  params.B = std::atoll(argv[1]);
  params.H = std::atoll(argv[2]);
  char* place = reinterpret_cast<char*>(4096);
  params.x = place + std::atoll(argv[3]);
  params.weight = params.out = params.scratch = place;
  const char* reason = unsupported(params);
  const int error = launch(params, nullptr);
  std::printf("%s|%d|%s|%zu", reason ? reason : "", error, launched, scratch_bytes(params));
}
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return tiny_problem(tmp_path_factory.mktemp("problem"))


@pytest.fixture(scope="module")
def program(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that asks for one shape: B H OFFSET-OF-X."""
    exported = exported_tiny(problem, HEADER + BODY)
    routes = plan_routes(exported)
    assert [route.tag for route in routes] == ["variant1_h64", "variant2_h256"]
    assert [route.defines["BLOCK"] for route in routes] == [256, 128]
    return built_program(exported, BUILDS, tmp_path_factory.mktemp("dispatch"))


def built_program(exported: ExportedKernel, builds: str, folder: Path) -> Path:
    """Return the choice between the builds of `exported` with `builds` in their place."""
    code = device_code(exported.candidate.source)
    files = source_files(Signature(exported, code.alignment_bytes), plan_routes(exported), code)
    write_files({**files, "main.cpp": MAIN.replace("BUILDS", builds)}, folder)
    includes = [f"-I{path}" for path in cuda_include_folders()]
    sources = [str(folder / "main.cpp"), "-x", "c++", str(folder / "scale_rows.cu")]
    words = [Settings(home=folder).gxx, "-std=c++17", "-Wall", "-Werror", *includes, *sources]
    subprocess.run([*words, "-o", str(folder / "program")], check=True)
    return folder / "program"


def answered(program: Path, shape: str) -> str:
    return subprocess.run(
        [str(program), *shape.split()], check=True, capture_output=True, text=True
    ).stdout


def test_a_shape_of_a_variant_without_a_build_is_refused(problem: Problem, tmp_path: Path) -> None:
    exported = exported_tiny(problem, UNSERVED + BODY)
    program = built_program(exported, UNSERVED_BUILDS, tmp_path)
    assert answered(program, "3 64 0") == "|0|1|1"
    assert answered(program, "24 64 0") == "|0|2|24"
    assert answered(program, "17 64 0") == "built for B <= 8; B % 8 == 0 only|1|nothing|0"
    said = str(folder_files(exported, "cuda")["README.md"])
    assert "| otherwise | nothing: refused | | |" in said


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        ("8 64 0", "|0|1|1"),
        ("32 256 0", "|0|2|32"),
        ("6 64 16", "|0|1|1"),
        ("0 64 0", "|0|nothing|0"),
        ("-2 64 0", "B must be 0 to 2147483647|1|nothing|1"),
        ("8 72 0", "needs H % 16 == 0 and B < 70000|1|nothing|0"),
        ("70000 64 0", "needs H % 16 == 0 and B < 70000|1|nothing|0"),
        ("65535 256 0", "|0|2|65535"),
        (
            "65536 256 0",
            "scale_rows would have B * BLOCK // 128 blocks in y, of at most 65535|1|nothing|65536",
        ),
        ("8 64 8", "x must be a pointer aligned to 16 bytes|1|nothing|1"),
    ],
)
def test_a_shape_takes_its_build_or_a_reason(program: Path, shape: str, answer: str) -> None:
    assert answered(program, shape) == answer


@pytest.mark.parametrize("shape", ["32 64 0", "8 256 0", "8 128 0", "3 64 0"])
def test_a_shape_without_a_build_is_told_those_that_have_one(program: Path, shape: str) -> None:
    reason, error, launched, _ = answered(program, shape).split("|")
    assert reason == (
        "built for B <= 8 with H = 64 with B % (256 / 128) == 0;"
        " otherwise with H = 256 with B % (128 / 128) == 0 only"
    )
    assert (error, launched) == ("1", "nothing")


def test_the_readme_has_the_shapes_workloads_and_values_of_each_build(problem: Problem) -> None:
    said = str(folder_files(exported_tiny(problem, HEADER + BODY), "cuda")["README.md"])
    assert "A shape needs `H % 16 == 0 and B < 70000`." in said
    assert "| B <= 8 | H = 64 with B % (256 / 128) == 0 | b8xh64 | BLOCK=256 |" in said
    assert "| otherwise | H = 256 with B % (128 / 128) == 0 | b32xh256 | BLOCK=128 |" in said


def test_a_name_that_generated_code_needs_is_refused(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    for name in ("problem.yaml", "oracle.py", "reference.cu"):
        text = (folder / name).read_text()
        (folder / name).write_text(
            text.replace("weight:", "stream:").replace('"weight"', '"stream"')
        )
    exported = exported_tiny(load_problem(folder), (folder / "reference.cu").read_text())
    with pytest.raises(ToolError, match="'stream' of scale_rows is a word of the generated code"):
        folder_files(exported, "cuda")
