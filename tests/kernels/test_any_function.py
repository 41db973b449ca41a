"""Problems of any function: free names, uses, scalars of workloads, rows that are not there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.kernels.candidate_guide import candidate_skeleton
from kopt.kernels.case_inputs import CASE_REGIMES, draw_inputs, drawn_regimes, regimes_left_out
from kopt.kernels.derived_regimes import DERIVED_REGIMES
from kopt.kernels.oracle import expected_at, expected_in_steps_at, load_oracle, load_steps
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel, load_problem, load_problems
from support.tiny_problem import ORACLE, PROBLEM_YAML, write_tiny_problem

FREE = PROBLEM_YAML.replace(
    "b8xh64: {axes: {B: 8, H: 64}}",
    "small: {axes: {B: 8, H: 64}, use: check, scalars: {scale: 3.0}}",
).replace("b32xh256: {axes: {B: 32, H: 256}}", "official: {axes: {B: 32, H: 256}, use: time}")


def _problem(root: Path, text: str, oracle: str = ORACLE) -> Problem:
    folder = write_tiny_problem(root)
    (folder / "problem.yaml").write_text(text)
    (folder / "oracle.py").write_text(oracle)
    return load_problem(folder)


def test_workloads_have_free_names_uses_and_scalars(tmp_path: Path) -> None:
    problem = _problem(tmp_path, FREE)
    small, official = problem.workloads
    assert problem.kernel_ids == ("scale_rows_small", "scale_rows_official")
    assert (small.use, official.use) == ("check", "time")
    assert problem.scalar_values(small) == {"scale": 3.0}
    assert problem.scalar_values(official) == {"scale": 2.0}


def test_what_a_problem_does_not_use_is_not_written(tmp_path: Path) -> None:
    plain = load_problem(write_tiny_problem(tmp_path)).model_dump(mode="json")
    assert set(plain["workloads"][0]) == {"name", "axes"}
    assert "precision" not in plain


def test_a_problem_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    problem = _problem(tmp_path, FREE.replace("row_axis: B\n", "precision: tf32\n"))
    assert problem.row_axis is None
    assert Problem.model_validate_json(problem.model_dump_json()) == problem


def _second(root: Path, name: str, workload: str) -> None:
    folder = root / name
    folder.mkdir()
    text = PROBLEM_YAML.replace("name: scale_rows", f"name: {name}")
    (folder / "problem.yaml").write_text(text.replace("b8xh64: {axes", f"{workload}: {{axes"))
    (folder / "oracle.py").write_text(ORACLE)


@pytest.mark.parametrize(("name", "workload"), [("scale", "rows_small"), ("scale_rows_small", "x")])
def test_a_kernel_id_of_two_is_refused(tmp_path: Path, name: str, workload: str) -> None:
    _problem(tmp_path, FREE)
    _second(tmp_path, name, workload)
    with pytest.raises(ToolError, match="'scale_rows_small' is also one of") as caught:
        load_problems(tmp_path)
    assert "give its workload another name" in str(caught.value)
    with pytest.raises(ToolError, match="is also one of"):
        find_kernel("scale_rows_small", tmp_path)


def test_an_oracle_that_takes_the_workload_is_told_it(tmp_path: Path) -> None:
    told = ORACLE.replace("expected(inputs, scalars)", "expected(inputs, scalars, workload)")
    told = told.replace('scalars["scale"]', 'workload.axes["B"]')
    problem = _problem(tmp_path, PROBLEM_YAML, told)
    oracle, workload = load_oracle(problem), problem.workloads[0]
    inputs = oracle.make_inputs(workload, np.random.default_rng(1), "normal")
    found = expected_at(oracle, inputs, {"scale": 2.0}, workload)["out"].exact
    np.testing.assert_array_equal(found, inputs["x"].astype(np.float64) * 8)


def test_steps_that_take_the_workload_are_told_it(tmp_path: Path) -> None:
    problem = _problem(tmp_path, PROBLEM_YAML)
    text = "def expected_in_steps(inputs, scalars, workload):\n    return {workload.name: None}\n"
    (problem.folder / "steps.py").write_text(text)
    steps = load_steps(problem)
    assert steps is not None
    assert list(expected_in_steps_at(steps, {}, {}, problem.workloads[0])) == ["b8xh64"]


def test_a_third_parameter_of_another_meaning_keeps_its_default(tmp_path: Path) -> None:
    odd = ORACLE.replace("expected(inputs, scalars)", "expected(inputs, scalars, rows=1)")
    problem = _problem(tmp_path, PROBLEM_YAML, odd.replace('scalars["scale"]', "rows"))
    oracle, workload = load_oracle(problem), problem.workloads[0]
    inputs = oracle.make_inputs(workload, np.random.default_rng(1), "normal")
    found = expected_at(oracle, inputs, {"scale": 2.0}, workload)["out"].exact
    np.testing.assert_array_equal(found, inputs["x"])


RECORDING = ORACLE.replace(
    "    rows, columns",
    "    assert regime in REGIMES, regime\n    rows, columns",
)


def test_only_the_regimes_that_an_oracle_serves_are_asked_for(tmp_path: Path) -> None:
    text = RECORDING + '\nREGIMES = ("normal", "mixed")\n'
    problem = _problem(tmp_path, PROBLEM_YAML, text)
    oracle = load_oracle(problem)
    assert drawn_regimes(oracle) == ("normal", "mixed", *DERIVED_REGIMES)
    assert regimes_left_out(problem, oracle) == ("outliers", "zero_blocks", "tiny", "huge")
    for regime in CASE_REGIMES:
        draw_inputs(problem, oracle, problem.workloads[0], np.random.default_rng(1), regime)


@pytest.mark.parametrize("regimes", ['("tiny",)', '("normal", "small")', '["normal"]', '"normal"'])
def test_odd_regimes_of_an_oracle_are_refused(tmp_path: Path, regimes: str) -> None:
    problem = _problem(tmp_path, PROBLEM_YAML, f"{ORACLE}\nREGIMES = {regimes}\n")
    with pytest.raises(ToolError, match="normal is always one of them"):
        load_oracle(problem)


def _drawn(problem: Problem, regime: str) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return draw_inputs(problem, load_oracle(problem), problem.workloads[0], rng, regime)


def test_without_rows_columns_and_sizes_are_derived_all_the_same(tmp_path: Path) -> None:
    problem = _problem(tmp_path, PROBLEM_YAML.replace("row_axis: B\n", ""))
    normal = _drawn(problem, "normal")["x"].tobytes()
    assert all(_drawn(problem, one)["x"].tobytes() != normal for one in DERIVED_REGIMES)
    assert _drawn(problem, "assorted")["x"].tobytes() == normal
    assert regimes_left_out(problem, load_oracle(problem)) == ("assorted",)


@pytest.mark.parametrize("shape", ["[B, H]", "[H]", "[]"])
def test_a_problem_without_rows_has_a_skeleton(tmp_path: Path, shape: str) -> None:
    text = PROBLEM_YAML.replace("row_axis: B\n", "").replace("[B, H]", shape)
    assert "scale_rows(" in candidate_skeleton(_problem(tmp_path, text))
