"""Data sets of FlashInfer-Trace read as tasks, without running anything of them."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.kernels.problem import Problem, storage_shape
from kopt.kernels.problem_loader import load_problems
from kopt.tools.export.folder_files import folder_files
from kopt.tools.export.trace_definition import output_name, trace_dtype
from kopt.tools.export.trace_form import safetensors_bytes
from kopt.tools.imports.flashinfer_trace import trace_tasks
from kopt.tools.imports.safetensors_file import stored_tensor
from kopt.tools.imports.trace_records import ConstAxis, Definition, WorkloadLine
from support.exports import exported_reference, write_files
from support.foreign_checkouts import definition, workload, write_trace

_LARGE = ("gemm_bf16", "gemm_fp8_block_scaled", "attention_decode", "attention_prefill")
EXPORTED = [
    # Their large products and caches take a minute to draw.
    pytest.param(p, id=p.name, marks=[pytest.mark.nightly] if p.name in _LARGE else [])
    for p in load_problems().values()
    if (p.folder / "torch_reference.py").is_file()
]


def _assigned(model: str) -> dict[str, int]:
    """Return the numbers that a file assigns at its top."""
    return {
        one.targets[0].id: one.value.value
        for one in ast.parse(model).body
        if isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Name)
        and isinstance(one.value, ast.Constant)
        and isinstance(one.value.value, int)
    }


def test_a_definition_is_a_task_at_its_largest_workload(tmp_path: Path) -> None:
    root = write_trace(tmp_path, [definition()], [workload(64), workload(4096), workload(8)])
    (task,) = trace_tasks(root)
    assert (task.name, task.group, task.id, task.fault) == (
        *("scaled_c96", "scaling", "scaled_c96"),
        "",
    )
    assert _assigned(task.model) == {"axis_rows": 4096, "axis_columns": 96}
    assert "return run(x, scale, 0.5)" in task.model


@pytest.mark.parametrize(
    ("changes", "given", "fault"),
    [
        ({"axes": {"rows": {"type": "odd"}}}, {}, "is no Definition: axes.rows"),
        ({"inputs": {"class": {"shape": ["rows"], "dtype": "float32"}}}, {}, "no name that Python"),
        (
            {"inputs": {"x": {"shape": ["rows"], "dtype": "float4_e2m1"}}},
            {},
            "float4_e2m1, which kopt cannot draw",
        ),
        (
            {"inputs": {"x": {"shape": ["depth"], "dtype": "int8"}}},
            {},
            "names 'depth', which is no",
        ),
        ({}, {"factor": {"type": "random"}}, "no value of the input factor"),
        ({}, {"x": {"type": "safetensors", "path": "../../x", "tensor_key": "x"}}, "outside of"),
        ({}, {"x": {"type": "safetensors", "path": "x.bin", "tensor_key": "x"}}, "cannot read"),
    ],
)
def test_what_no_file_can_hold_is_the_fault_of_its_task(
    tmp_path: Path, changes: dict[str, Any], given: dict[str, object], fault: str
) -> None:
    root = write_trace(tmp_path, [definition(**changes)], [workload(8, **given)])
    (task,) = trace_tasks(root)
    assert fault in task.fault
    assert task.model == ""


def test_without_a_workload_nothing_says_how_large_it_is(tmp_path: Path) -> None:
    (task,) = trace_tasks(write_trace(tmp_path, [definition()], []))
    assert task.fault == "no Workload says how large it is (rows)"


def test_inputs_of_files_are_drawn_like_their_values_and_positions_are_refused(
    tmp_path: Path,
) -> None:
    arrays = {
        "scale": np.linspace(1.0, 3.0, 96, dtype=np.float32),
        "x": np.arange(96, dtype=np.int32),
    }
    root = write_trace(tmp_path, [definition()], [workload(8, scale=_stored("scale"))])
    (root / "blob.safetensors").write_bytes(safetensors_bytes(arrays))
    (task,) = trace_tasks(root)
    assert "_torch.rand((axis_columns,)) * 2.0 + 1.0" in task.model
    positions = {**definition()["inputs"], "x": {"shape": ["columns"], "dtype": "int32"}}
    other = tmp_path / "other"
    root = write_trace(other, [definition(inputs=positions)], [workload(8, x=_stored("x"))])
    (root / "blob.safetensors").write_bytes(safetensors_bytes(arrays))
    (task,) = trace_tasks(root)
    assert "only grows, as positions" in task.fault


def _stored(key: str) -> dict[str, str]:
    return {"type": "safetensors", "path": "blob.safetensors", "tensor_key": key}


def test_a_damaged_safetensors_file_is_told_with_its_tensor(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    whole = safetensors_bytes({"x": np.zeros(8, np.float32)})
    path.write_bytes(whole)
    assert stored_tensor(path, "x").shape == (8,)
    for content in (b"\xff" * 8, whole[:40], whole.replace(b"F32", b"F99")):
        path.write_bytes(content)
        with pytest.raises(ToolError, match=r"x\.safetensors has no whole tensor 'x'"):
            stored_tensor(path, "x")


def test_a_folder_without_definitions_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"no definitions/\*\*/\*\.json"):
        list(trace_tasks(tmp_path))


@pytest.mark.slow  # draws the inputs of every workload
@pytest.mark.parametrize("problem", EXPORTED)
def test_what_kopt_exports_comes_back_equal(problem: Problem, tmp_path: Path) -> None:
    files = folder_files(exported_reference(problem.kernel_ids[0]), "flashinfer-trace")
    parts = ("definitions", "workloads", "blob")
    kept = {path: text for path, text in files.items() if path.split("/")[0] in parts}
    root = write_files(kept, tmp_path)
    shapes: list[dict[str, tuple[int, ...]]] = []
    for path in sorted(root.glob("definitions/**/*.json")):
        document = json.loads(path.read_text("utf-8"))
        read = Definition.model_validate(document)
        assert read.reference == document["reference"]
        for kind in ("inputs", "outputs"):
            back = {name: one.model_dump(mode="json") for name, one in getattr(read, kind).items()}
            without = {
                name: {key: value for key, value in one.items() if key != "description"}
                for name, one in document[kind].items()
            }
            assert back == without
        shapes += _shapes(root, read)
    assert sorted(map(str, shapes)) == sorted(
        str(_wanted(problem, place)) for place in range(len(problem.workloads))
    )
    faults = {one.fault for one in trace_tasks(root)}
    if problem.name.startswith("attention_"):  # no random integers are bounds of sequences
        assert all("indptr comes from a file and only grows" in fault for fault in faults)
    else:
        assert faults == {""}


def _shapes(root: Path, read: Definition) -> list[dict[str, tuple[int, ...]]]:
    """Return the shape and dtype of each tensor at each workload of a Definition."""
    found: list[dict[str, tuple[int, ...]]] = []
    for path in root.glob(f"workloads/**/{read.name}.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            axes = WorkloadLine.model_validate_json(line).workload.axes
            axes = axes | {
                name: one.value for name, one in read.axes.items() if isinstance(one, ConstAxis)
            }
            tensors = {**read.inputs, **read.outputs}
            found.append(
                {
                    f"{name}: {one.dtype}": tuple(axes[axis] for axis in one.shape or ())
                    for name, one in tensors.items()
                }
            )
    return found


def _wanted(problem: Problem, place: int) -> dict[str, tuple[int, ...]]:
    axes = problem.workloads[place].axes
    given = [(one.name, one) for one in problem.tensors if one.role != "out"]
    given += [(output_name(one), one) for one in problem.tensors if one.role != "in"]
    return {f"{name}: {trace_dtype(one.dtype)}": storage_shape(one, axes) for name, one in given}
