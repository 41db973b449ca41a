"""SOL-ExecBench, robust-kbench and GPU MODE read as tasks, without running anything of them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.tools.imports.foreign_task import ForeignTask
from kopt.tools.imports.gpumode import gpumode_tasks
from kopt.tools.imports.host_python import on_cpu
from kopt.tools.imports.robust_kbench import robust_kbench_tasks
from kopt.tools.imports.sol_execbench import sol_tasks
from kopt.tools.imports.trace_model import axis_expression
from kopt.tools.imports.trace_records import Definition
from support.foreign_checkouts import (
    TASK_YML,
    definition,
    write_gpumode,
    write_robust,
    write_sol,
)


def test_a_problem_of_sol_execbench_makes_its_own_inputs(tmp_path: Path) -> None:
    (task,) = sol_tasks(write_sol(tmp_path))
    assert (task.name, task.group, task.fault) == ("grouped_scale", "all", "")
    assert "axis_rows = 2048" in task.model
    assert "axis_width = int(axis_parts * 16)" in task.model
    assert "made = inputs_of({'rows': axis_rows, 'groups': axis_groups," in task.model


@pytest.mark.parametrize(
    "text", ["__import__('os')", "rows.bit_length()", "other * 2", "[rows][0]", "rows if 1 else 2"]
)
def test_an_axis_expression_is_arithmetic_alone(text: str) -> None:
    read = Definition.model_validate(definition())
    assert axis_expression("-rows * (columns // 2) ** 2 % 7", read) == (
        "-axis_rows * (axis_columns // 2) ** 2 % 7"
    )
    with pytest.raises(ToolError, match="holds more than axes and numbers"):
        axis_expression(text, read)


def test_a_task_of_robust_kbench_has_its_first_configuration_shared_ones_last(
    tmp_path: Path,
) -> None:
    (task,) = robust_kbench_tasks(write_robust(tmp_path))
    assert (task.name, task.id, task.fault) == ("leaky_scale", "leaky_scale", "")
    assert "super().__init__(start=init_start, width=shared_width)" in task.model
    assert "_task.get_inputs(rows=input_rows, width=shared_width)" in task.model
    assert "shared_width = 64" in task.model


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "config_forward.json is no JSON"),
        ("[]", "config_forward.json is no mapping"),
        (json.dumps({"single_input_configs": ["x"]}), "no list of settings by name"),
        (json.dumps({"single_init_configs": [{"a b": 1}]}), "no list of settings by name"),
    ],
)
def test_a_configuration_that_is_none_is_the_fault_of_its_task(
    tmp_path: Path, content: str, fault: str
) -> None:
    root = write_robust(tmp_path)
    (root / "tasks/leaky_scale/config_forward.json").write_text(content, "utf-8")
    (task,) = robust_kbench_tasks(root)
    assert fault in task.fault


def test_a_task_of_gpu_mode_is_its_largest_benchmark_on_the_cpu(tmp_path: Path) -> None:
    (task,) = gpumode_tasks(write_gpumode(tmp_path))
    assert (task.name, task.group, task.id, task.fault) == (
        *("deck_rowsum_py", "deck", "rowsum_py"),
        "",
    )
    assert "size_rows = 2048\nsize_columns = 64\n" in task.model
    assert "seed=_torch.initial_seed()" in task.model
    assert "cuda" not in task.model
    assert "submission" not in task.model


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('lang: "py"', 'lang: "cu"', "its language is cu"),
        ('lang: "py"', "multi_gpu: true", "it runs on several GPUs"),
        ("files:", "files: [", "task.yml is no YAML"),
        (TASK_YML, "- a list", "task.yml is no mapping"),
        ("../utils.py", "../../../../utils.py", "utils.py lies outside of the checkout"),
        ("../utils.py", "../missing.py", "missing.py is missing"),
        ('"reference.py"}', '"other.py"}', "other.py is missing"),
        ('{"name": "reference.py"', '{"name": "other.py"', "names no reference.py"),
        ('"seed"', '"a seed"', "has no benchmark whose values"),
    ],
)
def test_what_cannot_be_read_of_a_task_is_its_fault(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    root = write_gpumode(tmp_path / "deep", task=TASK_YML.replace(old, new))
    (task,) = gpumode_tasks(root)
    assert fault in task.fault
    assert task.model == ""


def test_python_for_a_gpu_is_rewritten_by_its_syntax_and_not_by_its_letters() -> None:
    text = 'x = torch.rand(4, device="cuda:1").cuda(non_blocking=True)\nnote = "cuda cores"\n'
    assert on_cpu(text, "a.py") == "x = torch.rand(4, device='cpu').cpu()\nnote = 'cuda cores'"
    with pytest.raises(ToolError, match=r"a\.py is no Python: .*line 1"):
        on_cpu("def", "a.py")


@pytest.mark.parametrize("read", [sol_tasks, robust_kbench_tasks, gpumode_tasks])
def test_a_folder_without_tasks_names_the_files_that_are_looked_for(
    read: Callable[[Path], Iterator[ForeignTask]], tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=r"has no folder with (definition|func_forward|task)\."):
        list(read(tmp_path))
