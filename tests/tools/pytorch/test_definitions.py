"""What packaged problems compute as a graph: as torch exports it today, and right as kernels."""

import importlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.layouts import to_sf_128x4
from kopt.kernels.problem import Problem, Workload, make_workload, tensor_shape
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status
from kopt.tools.check.case_data import CaseKey, make_case_data
from kopt.tools.check.judge import judge
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.pytorch.generated import (
    DEFINITION_FILE,
    GeneratedKernels,
    definition_of,
    generated_kernels,
)
from kopt.tools.pytorch.importing.definition import definition_text, export_definition
from kopt.tools.pytorch.interpreter import BoundGraph
from kopt.tools.pytorch.lowering.row_schedule import TECHNIQUES
from kopt.tools.sim.device import SimDevice
from support.quick_cases import first_quick

PROBLEMS = [one for one in load_problems().values() if (one.folder / DEFINITION_FILE).is_file()]
ON_HOPPER_ONLY = {"cluster_sums", "dependent_launch"}
each_problem = pytest.mark.parametrize(
    "problem", first_quick(PROBLEMS, 7), ids=lambda problem: problem.name
)


def _kernels(problem: Problem, arch: str = "sm_90a") -> GeneratedKernels:
    found = generated_kernels(problem, arch)
    assert found is not None
    return found


_FEW_EXPERTS = {"B": 3, "M": 130, "K": 1792}
SMALLER = dict.fromkeys(("silu_mul_fp4quant", "silu_mul_fp4quant_linear"), _FEW_EXPERTS)
"""Shapes of problems whose only workload has 15 million elements, which take 9 s. The scales of 130
rows lie in two tiles, of which the second is not full."""


def _smallest(problem: Problem) -> Workload:
    """Return the workload with the fewest elements that a check runs, or a smaller one."""
    if problem.name in SMALLER:
        return make_workload(problem, SMALLER[problem.name])
    checked = [one for one in problem.workloads if one.use != "time"]
    return min(checked, key=lambda one: sum(one.axes.values()))


def test_every_packaged_problem_has_a_definition_unless_its_tables_say_how_long_sums_are() -> None:
    without = set(load_problems()) - {one.name for one in PROBLEMS}
    assert without == {"attention_decode", "attention_prefill"}


@pytest.mark.slow  # torch is loaded, and exports
@each_problem
def test_a_definition_is_what_torch_exports_of_the_reference(problem: Problem) -> None:
    kept = json.loads((problem.folder / DEFINITION_FILE).read_text("utf-8"))
    made = json.loads(definition_text(export_definition(problem)))
    for part in ("inputs", "nodes", "outputs"):
        assert kept[part] == made[part]


@pytest.mark.slow  # torch is loaded
@pytest.mark.parametrize("regime", ["normal", "zero_blocks"])
@each_problem
def test_a_definition_in_float64_passes_the_gates(problem: Problem, regime: str) -> None:
    graph, workload = definition_of(problem), _smallest(problem)
    assert graph is not None
    data = make_case_data(CaseKey(problem, workload, 3, regime))
    scalars = problem.scalar_values(workload)
    inputs = {name: torch_of(array) for name, array in data.inputs.items()}
    inputs |= {name: torch_of(np.array(value)) for name, value in scalars.items()}
    given = BoundGraph(graph, workload.axes).run(inputs)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, result in given.items():
        tensor = problem.tensor(name)
        made = result.contiguous().numpy().astype(numpy_dtype(tensor.dtype))
        padded = np.zeros(tensor_shape(tensor, workload.axes), made.dtype)
        padded[tuple(map(slice, made.shape))] = made
        if tensor.layout == "sf_128x4":
            padded = to_sf_128x4(padded.view(np.uint8), 0).view(made.dtype)
        arrays[name] = padded
    finding = judge(data, arrays, poison=0).finding
    assert finding is None, f"{finding.tensor}: {finding.note}"


def torch_of(array: npt.NDArray[Any]) -> Any:
    torch: Any = importlib.import_module("torch")
    is_whole = array.dtype.kind in "iub"
    return torch.from_numpy(np.array(array if is_whole else array.astype(np.float64)))


@each_problem
def test_every_technique_that_is_offered_changes_the_kernel(problem: Problem) -> None:
    kernels = _kernels(problem)
    sources = [kernels.source(one) for one in ((), *((name,) for name in kernels.techniques))]
    code = {re.sub(r"^(family|note): .*", "", one, flags=re.MULTILINE) for one in sources}
    assert len(code) == len(sources)


@pytest.mark.parametrize(
    ("name", "unfit"),
    [
        ("fused_add_rmsnorm", {"split_rows"}),
        ("silu_and_mul", {"cluster_sums", "early_stores", "products_before_barrier"}),
    ],
)
def test_what_is_made_by_rows_is_offered_all_that_fits_it(name: str, unfit: set[str]) -> None:
    (problem,) = (one for one in PROBLEMS if one.name == name)
    offered = set(_kernels(problem).techniques) | {"hoisted_factors"}  # of those that divide
    assert offered == set(TECHNIQUES) - {*unfit, "roles_by_block"}


def test_results_of_different_shapes_are_offered_one_launch() -> None:
    (problem,) = (one for one in PROBLEMS if one.name == "rope_quantize_fp8")
    kernels = _kernels(problem)
    every = {"dependent_launch", "streaming_access", "roles_by_block", "occupancy_bound"}
    every.add("fast_reciprocal")  # what it multiplies is flushed to zero where it is subnormal
    assert set(kernels.techniques) == every
    launches = {name: kernels.source([name]).count("kernel: ") for name in every}
    assert launches == {**dict.fromkeys(every, 4), "roles_by_block": 1}


@each_problem
def test_older_gpus_get_no_technique_that_their_compiler_refuses(problem: Problem) -> None:
    hopper, ampere = (_kernels(problem, arch).techniques for arch in ("sm_90a", "sm_80"))
    assert tuple(one for one in hopper if one not in ON_HOPPER_ONLY) == ampere


@each_problem
def test_a_kernel_serves_every_workload(problem: Problem) -> None:
    kernels = _kernels(problem)
    for techniques in ((), kernels.techniques):
        case = Case(problem, problem.workloads[0], Candidate(kernels.source(techniques)))
        assert case.header is not None, case.parsed
        assert case.domain == problem.workloads
        assert all(case.at(workload).choices for workload in problem.workloads)


@pytest.mark.slow  # nvcc and the simulator, half a minute each
@pytest.mark.parametrize("has_techniques", [pytest.param(False, marks=pytest.mark.nightly), True])
@each_problem
def test_generated_kernels_pass_a_quick_check(
    problem: Problem, has_techniques: bool, settings: Settings
) -> None:
    kernels = _kernels(problem)
    source = kernels.source(kernels.techniques if has_techniques else ())
    _assert_passes(problem, _smallest(problem), source, settings)


def _assert_passes(problem: Problem, workload: Workload, source: str, settings: Settings) -> None:
    """Check at one workload: the others would only be compiled, a second each."""
    alone = problem.model_copy(update={"workloads": (workload,)})
    case = Case(alone, workload, Candidate(source))
    case = case.with_tune(case.choices[0])
    request = CheckRequest(case, "quick", compiler="nvrtc")
    result = check_candidate(request, SimDevice(settings), settings)
    assert result.status is Status.PASSED, result.diagnostics


@pytest.mark.slow  # nvcc and the simulator
def test_a_generated_kernel_reads_padded_rows_of_an_input_where_they_lie(
    settings: Settings,
) -> None:
    problem = load_problems()["gemm_fp8_block_scaled"]
    (padded,) = (one for one in problem.workloads if one.name == "m37xn192xk384")
    assert padded.axes["MP"] != padded.axes["M"]
    _assert_passes(problem, padded, _kernels(problem).source(()), settings)


def test_a_problem_without_a_definition_has_no_generated_kernels(tmp_path: Path) -> None:
    copied = load_problems()["silu_and_mul"].model_copy(update={"folder": tmp_path})
    assert generated_kernels(copied, "sm_90a") is None


def test_a_definition_of_another_problem_is_refused(tmp_path: Path) -> None:
    problem = load_problems()["silu_and_mul"]
    other = load_problems()["merge_state"].folder / DEFINITION_FILE
    shutil.copy(other, tmp_path / DEFINITION_FILE)
    copied = problem.model_copy(update={"folder": tmp_path})
    with pytest.raises(ToolError, match=r"definition\.json does not fit its problem\.yaml \(input"):
        generated_kernels(copied, "sm_90a")


def test_a_damaged_definition_is_refused(tmp_path: Path) -> None:
    (tmp_path / DEFINITION_FILE).write_text('{"torch": "2', encoding="utf-8")
    copied = load_problems()["silu_and_mul"].model_copy(update={"folder": tmp_path})
    with pytest.raises(ToolError, match=r"definition\.json is damaged"):
        generated_kernels(copied, "sm_90a")
