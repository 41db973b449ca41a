"""FlashInfer-Trace files of an export, judged by that format's own rules."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.problem import Problem, tensor_shape
from kopt.kernels.problem_loader import load_problem, load_problems
from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.export.folder_files import Files, folder_files
from support.exports import exported_reference, exported_tiny
from support.tiny_problem import BODY, HEADER, ORACLE, tiny_problem, write_tiny_problem
from support.trace_rules import check_definition, check_solution, check_workload_line

pytestmark = pytest.mark.slow  # exports are compiled


def first_workload(kernel: str) -> ExportedKernel:
    """Return the reference kernel of a problem that has one workload alone."""
    exported = exported_reference(kernel)
    fields = {"workloads": exported.problem.workloads[:1]}
    return replace(exported, problem=exported.problem.model_copy(update=fields))


def documents(files: Files, folder: str) -> list[dict[str, Any]]:
    return [json.loads(text) for path, text in files.items() if path.startswith(f"{folder}/")]


@pytest.mark.parametrize(
    "problem",
    [p for p in load_problems().values() if (p.folder / "torch_reference.py").is_file()],
    ids=lambda problem: problem.name,
)
def test_every_problem_with_a_reference_gives_a_valid_data_set(problem: Problem) -> None:
    exported = first_workload(problem.kernel_ids[0])
    files = folder_files(exported, "flashinfer-trace")
    (definition,) = documents(files, "definitions")
    (solution,) = documents(files, "solutions")
    (line,) = documents(files, "workloads")
    check_definition(definition)
    check_solution(solution, definition)
    check_workload_line(line, definition)
    constant = {n: a["value"] for n, a in definition["axes"].items() if a["type"] == "const"}
    axes = {**constant, **line["workload"]["axes"]}
    for tensor in problem.tensors:
        if tensor.role != "out":
            shape = tuple(axes[name] for name in definition["inputs"][tensor.name]["shape"])
            assert shape == tensor_shape(tensor, problem.workloads[0].axes)


def test_rows_vary_unless_another_axis_follows_from_them() -> None:
    norm = folder_files(first_workload("fused_add_rmsnorm_quant_b8xh8192"), "flashinfer-trace")
    padded = folder_files(
        first_workload("fused_add_rmsnorm_fp8_block_quant_b8xh7168"), "flashinfer-trace"
    )
    assert documents(norm, "definitions")[0]["axes"]["B"] == {"type": "var"}
    assert documents(padded, "definitions")[0]["axes"]["B"] == {"type": "const", "value": 8}


def test_what_is_updated_in_place_is_copied_to_the_output_first() -> None:
    files = folder_files(first_workload("fused_add_rmsnorm_b8xh4096"), "flashinfer-trace")
    (definition,), (solution,) = documents(files, "definitions"), documents(files, "solutions")
    assert list(definition["outputs"]) == ["input_out", "residual_out"]
    binding = next(s["content"] for s in solution["sources"] if s["path"] == "binding.cu")
    copied = binding.index("cudaMemcpyAsync(residual_out.data_ptr(), residual.data_ptr(),")
    assert copied < binding.index("params.residual = residual_out.data_ptr();")
    assert binding.index("params.residual = residual_out.data_ptr();") < binding.index("launch(")


def test_tables_and_scales_come_from_a_safetensors_file() -> None:
    exported = first_workload("rope_quantize_fp8_n8xh128")
    files = folder_files(exported, "flashinfer-trace")
    (line,) = documents(files, "workloads")
    kinds = {name: value["type"] for name, value in line["workload"]["inputs"].items()}
    assert kinds == {
        **dict.fromkeys(("q_rope", "k_rope", "q_nope", "k_nope"), "random"),
        **dict.fromkeys(("cos_sin_cache", "pos_ids"), "safetensors"),
    }
    data = files[line["workload"]["inputs"]["pos_ids"]["path"]]
    assert isinstance(data, bytes)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert header["cos_sin_cache"] == {"dtype": "F32", "shape": [8, 64], "data_offsets": [0, 2048]}
    assert header["pos_ids"] == {"dtype": "I32", "shape": [8], "data_offsets": [2048, 2080]}
    positions = memoryview(data[8 + length + 2048 :]).cast("i").tolist()
    assert sorted(positions) == list(range(8))


def test_outputs_that_are_partly_left_alone_are_refused(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    oracle = ORACLE.replace("dtype=bool)", "dtype=bool)\n    written[-1] = False")
    (folder / "oracle.py").write_text(oracle)
    with pytest.raises(ToolError, match="scale_rows_b8xh64 may leave elements of out as they were"):
        folder_files(exported_tiny(load_problem(folder), HEADER + BODY), "flashinfer-trace")


def test_a_problem_without_a_reference_says_which_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"torch_reference\.py is missing"):
        folder_files(exported_tiny(tiny_problem(tmp_path), HEADER + BODY), "flashinfer-trace")
