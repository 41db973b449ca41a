"""The compile stage from a candidate's text to its result, on a tiny problem."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.cuda import compile_stage
from kopt.tools.cuda.compile_stage import compile_candidate
from kopt.tools.cuda.toolchain import FoundToolchain
from support.compile_requests import request_for
from support.tiny_problem import BODY, HEADER


def first_error(result: CompileResult) -> str:
    return next(entry.message for entry in result.diagnostics if entry.severity == "error")


def test_a_good_candidate_has_a_build_and_an_occupancy_per_architecture(
    compile_problem: Problem, settings: Settings
) -> None:
    request = request_for(compile_problem, HEADER + BODY, "sm_100a", "sm_90a")
    result = compile_candidate(request, settings)
    assert result.status == Status.PASSED, result.diagnostics
    assert result.kernel == "scale_rows_b8xh64"
    assert [build.arch for build in result.builds] == ["sm_100a", "sm_90a"]
    assert all(build.workloads == ("b8xh64", "b32xh256") for build in result.builds)
    assert all(Path(build.cubin_path).is_file() for build in result.builds)
    assert [entry.gpu for entry in result.occupancy] == ["B200", "H100"]
    assert all(entry.theoretical_occupancy == 1.0 for entry in result.occupancy)
    assert result.log_path is not None
    assert "Used" in Path(result.log_path).read_text("utf-8")
    json.loads(result.model_dump_json(by_alias=True))


def test_a_cached_result_says_so_and_keeps_its_identity(
    compile_problem: Problem, settings: Settings
) -> None:
    request = request_for(compile_problem, HEADER + BODY)
    first, second = compile_candidate(request, settings), compile_candidate(request, settings)
    assert [build.cached for build in second.builds] == [True]
    assert second.sandbox is None
    assert second.binary_id == first.binary_id
    assert second.occupancy == first.occupancy


@pytest.mark.slow  # a compile for each build
def test_specialised_axes_and_tune_values_are_compiled_in(
    compile_problem: Problem, settings: Settings
) -> None:
    source = HEADER.replace("tune:", "specialize: [H]\ntune:") + BODY.replace("h < H", "h < KOPT_H")
    result = compile_candidate(request_for(compile_problem, source, BLOCK=256), settings)
    assert result.status == Status.PASSED, result.diagnostics
    found = {build.workloads: build.defines for build in result.builds}
    assert found == {
        ("b8xh64",): {"BLOCK": 256, "KOPT_H": 64},
        ("b32xh256",): {"BLOCK": 256, "KOPT_H": 256},
    }


def test_a_header_mistake_is_a_plan_error_before_any_compiler_runs(
    compile_problem: Problem, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_stage, "find_toolchain", None)  # calling it would raise
    result = compile_candidate(request_for(compile_problem, "int x;\n"), settings)
    assert result.status == Status.PLAN_ERROR
    result = compile_candidate(request_for(compile_problem, HEADER + BODY, BLOCK=77), settings)
    assert result.status == Status.PLAN_ERROR
    assert "BLOCK is 77" in first_error(result)


def test_a_forbidden_include_is_refused_before_any_compiler_runs(
    compile_problem: Problem, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_stage, "find_toolchain", None)  # calling it would raise
    source = HEADER + '#include "/etc/passwd"\n' + BODY
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert result.status == Status.REFUSED
    assert result.diagnostics[0].line == HEADER.count("\n") + 1


def test_a_syntax_error_has_the_line_of_the_author_s_file(
    compile_problem: Problem, settings: Settings
) -> None:
    source = HEADER + BODY.replace("* scale;", "* scale")
    result = compile_candidate(request_for(compile_problem, source, "sm_100a", "sm_90a"), settings)
    assert result.status == Status.COMPILE_ERROR
    errors = [entry for entry in result.diagnostics if entry.severity == "error"]
    assert len(errors) == 1  # the same for both architectures
    assert errors[0].line == source[: source.index("* scale\n")].count("\n") + 2
    assert result.builds == ()
    assert result.log_path is not None


def test_a_parameter_of_another_type_is_a_plan_error_with_the_launch_s_line(
    compile_problem: Problem, settings: Settings
) -> None:
    source = HEADER + BODY.replace("const float* x", "const int* x")
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert result.status == Status.PLAN_ERROR
    assert "const float*" in first_error(result)
    assert result.diagnostics[0].line == HEADER[: HEADER.index("- kernel")].count("\n") + 1


def test_a_kernel_that_does_not_exist_is_a_plan_error(
    compile_problem: Problem, settings: Settings
) -> None:
    source = HEADER + BODY.replace("void scale_rows", "void scale_row")
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert result.status == Status.PLAN_ERROR
    assert "scale_rows" in first_error(result)


def test_a_block_over_the_launch_bounds_is_a_plan_error(
    compile_problem: Problem, settings: Settings
) -> None:
    source = HEADER + BODY.replace("void scale_rows", "void __launch_bounds__(64) scale_rows")
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert result.status == Status.PLAN_ERROR
    assert "__launch_bounds__(64)" in first_error(result)


@pytest.mark.slow  # a compile of its own
def test_module_state_is_refused_and_the_cubin_is_still_described(
    compile_problem: Problem, settings: Settings
) -> None:
    body = "__device__ int calls;\n" + BODY.replace("for (", "atomicAdd(&calls, 1);\n  for (")
    result = compile_candidate(request_for(compile_problem, HEADER + body), settings)
    assert result.status == Status.REFUSED
    assert "module scope" in first_error(result)
    assert result.builds[0].module_global_bytes == 4
    assert result.occupancy == ()


@pytest.mark.slow  # three compiles
def test_a_dependent_launch_must_wait_for_its_producer(
    compile_problem: Problem, settings: Settings
) -> None:
    header = HEADER.replace("block: BLOCK", "block: BLOCK\n    pdl: true")
    result = compile_candidate(request_for(compile_problem, header + BODY), settings)
    assert result.status == Status.PLAN_ERROR
    assert "never waits" in first_error(result)
    waiting = BODY.replace("for (", "cudaGridDependencySynchronize();\n  for (")
    assert (
        compile_candidate(request_for(compile_problem, header + waiting), settings).status
        == "passed"
    )


@pytest.mark.slow  # a compile of its own
def test_a_dependent_launch_cannot_be_judged_without_nvdisasm(
    compile_problem: Problem,
    settings: Settings,
    toolchain: FoundToolchain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blind = replace(toolchain, nvdisasm=None)

    def find_blind(_settings: Settings) -> FoundToolchain:
        return blind

    monkeypatch.setattr(compile_stage, "find_toolchain", find_blind)
    header = HEADER.replace("block: BLOCK", "block: BLOCK\n    pdl: true")
    timed = BODY.replace("for (", "if (clock64() == 0) return;\n  for (")
    with pytest.raises(SetupError, match="nvdisasm"):
        compile_candidate(request_for(compile_problem, header + timed), settings)


def test_a_grid_of_co_resident_blocks_is_counted_from_the_cubin(
    compile_problem: Problem, settings: Settings
) -> None:
    header = HEADER.replace("grid: B", "grid: blocks_per_sm * SM_COUNT")
    result = compile_candidate(request_for(compile_problem, header + BODY), settings)
    assert result.status == Status.PASSED, result.diagnostics
    (occupancy,) = result.occupancy
    assert occupancy.blocks_per_sm == 16
    assert occupancy.grid_blocks == 16 * 148
    assert occupancy.waves == 1.0


@pytest.mark.slow  # several compiles
def test_variants_with_the_same_defines_share_a_cubin_and_their_assertions(
    compile_problem: Problem, settings: Settings
) -> None:
    header = """/* kopt: 1
family: other
variants:
  - when: "B < 16"
    launch: [{kernel: scale_rows, grid: B, block: 128, args: [x, out, H, scale]}]
  - when: "true"
    launch: [{kernel: other_rows, grid: B, block: 128, args: [out, x, H, scale]}]
*/
"""
    other = BODY.replace("scale_rows", "other_rows").replace(
        "const float* x, float* out", "float* out, const float* x"
    )
    result = compile_candidate(request_for(compile_problem, header + BODY + other), settings)
    assert result.status == Status.PASSED, result.diagnostics
    assert [build.workloads for build in result.builds] == [("b8xh64", "b32xh256")]
    wrong = compile_candidate(
        request_for(compile_problem, header + BODY + other.replace("const float*", "const int*")),
        settings,
    )
    assert wrong.status == Status.PLAN_ERROR  # also where only an unnamed workload is concerned


@pytest.mark.parametrize("archs", [("sm_12",), ("100a",), ("sm_100af",), ("sm_100a", "-Xfoo")])
def test_an_unknown_architecture_is_the_caller_s_mistake(
    compile_problem: Problem, settings: Settings, archs: tuple[str, ...]
) -> None:
    with pytest.raises(ToolError, match=r"architecture|GPU data sheet"):
        compile_candidate(request_for(compile_problem, HEADER + BODY, *archs), settings)


def test_no_architecture_is_the_caller_s_mistake(
    compile_problem: Problem, settings: Settings
) -> None:
    request = replace(request_for(compile_problem, HEADER + BODY), archs=())
    with pytest.raises(ToolError, match="no architecture"):
        compile_candidate(request, settings)
