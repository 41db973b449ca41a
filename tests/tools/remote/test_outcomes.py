"""Outputs of another machine are held against the problem before they are used."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import InfraError
from kopt.config.gpu_specs import load_gpus
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.tools.devices.device import Arrays, ExecutionOutcome, Program
from kopt.tools.remote.outcomes import refuse_other_outputs
from support.tiny_problem import write_tiny_problem


@pytest.fixture
def program(tmp_path: Path) -> Program:
    folder = write_tiny_problem(tmp_path)
    problem = load_problem(folder)
    case = Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu"))
    plan = resolve_plan(case, load_gpus()["H100"]).plan
    assert plan is not None
    return Program(case.candidate, problem, plan)


def test_outputs_of_the_problem_are_taken(program: Program) -> None:
    outputs: Arrays = {"out": np.zeros((8, 64), np.float32)}
    refuse_other_outputs(program, ExecutionOutcome(Status.PASSED, outputs=outputs))
    refuse_other_outputs(program, ExecutionOutcome(Status.CRASH))


@pytest.mark.parametrize(
    "outputs",
    [
        {},
        {"out": np.zeros((1, 64), np.float32)},
        {"out": np.zeros((8, 64), np.float64)},
        {"out": np.zeros((8, 64), np.float32), "x": np.zeros((8, 64), np.float32)},
    ],
    ids=["none", "one row", "another dtype", "an input"],
)
def test_outputs_of_another_form_are_refused(program: Program, outputs: Arrays) -> None:
    with pytest.raises(InfraError, match="the other machine gave outputs"):
        refuse_other_outputs(program, ExecutionOutcome(Status.PASSED, outputs=outputs))
