"""The skeleton that `kopt show` prints fits every packaged problem."""

import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.candidate_guide import candidate_skeleton
from kopt.kernels.domain import tune_choices
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems

PROBLEMS = list(load_problems().values())


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_header_of_the_skeleton_parses_without_a_remark(problem: Problem) -> None:
    outcome = parse_header(Candidate(candidate_skeleton(problem)), problem)
    assert outcome.diagnostics == ()
    assert outcome.header is not None
    assert len(tune_choices(outcome.header)) == 3
    assert outcome.header.note is None  # it would be taken for a hypothesis


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_skeleton_names_every_tensor_and_scalar_once_as_a_parameter(problem: Problem) -> None:
    signature = candidate_skeleton(problem).split('extern "C"')[1].split(") {")[0]
    for name in (*(t.name for t in problem.tensors), *(s.name for s in problem.scalars)):
        assert signature.count(f" {name}") >= 1


def test_inputs_are_const_and_outputs_are_not() -> None:
    problem = next(item for item in PROBLEMS if item.name == "silu_and_mul")
    lines = candidate_skeleton(problem).splitlines()
    pointers = {line.split("// ")[1].split()[0]: line for line in lines if "__restrict__" in line}
    assert pointers["in"].strip().startswith("const ")
    assert not pointers["out"].strip().startswith("const ")


@pytest.mark.parametrize(
    ("name", "grid", "columns"),
    [("silu_and_mul", "B", "H"), ("merge_state", "N * H", "D"), ("nvfp4_quantize", "M", "K")],
)
def test_block_has_a_row_and_its_threads_go_through_the_last_axis(
    name: str, grid: str, columns: str
) -> None:
    problem = next(item for item in PROBLEMS if item.name == name)
    skeleton = candidate_skeleton(problem)
    assert f"    grid: {grid}\n" in skeleton
    loop = f"for (int column = threadIdx.x; column < {columns}; column += BLOCK) {{"
    assert loop in skeleton


def test_problem_without_rows_has_a_thread_for_each_element() -> None:
    problem = next(item for item in PROBLEMS if item.name == "silu_and_mul")
    flat = tuple(one.model_copy(update={"shape": ("B",)}) for one in problem.tensors)
    skeleton = candidate_skeleton(problem.model_copy(update={"tensors": flat}))
    assert "    grid: ceil_div(B, BLOCK)\n" in skeleton
    assert "if (index < B) {" in skeleton
