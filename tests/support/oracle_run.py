"""Running one oracle on a workload of any size."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.expressions import evaluate_expression
from kopt.kernels.oracle import Expected, load_oracle
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems

Inputs = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class OracleRun:
    """Inputs of one draw and what the oracle makes of them."""

    problem: Problem
    workload: Workload
    inputs: Inputs
    outputs: dict[str, Expected]


@cache
def problems() -> dict[str, Problem]:
    """Return the packaged problems, read once."""
    return load_problems()


def workload_of(problem: Problem, axes: dict[str, int]) -> Workload:
    """Return a workload of `problem` with the variable `axes`, computed axes filled in."""
    values = dict(axes)
    for name, expression in problem.axes.items():
        if expression is not None:
            values[name] = evaluate_expression(expression, values)
    return Workload(name="x".join(f"{k.lower()}{v}" for k, v in axes.items()), axes=values)


def draw(name: str, axes: dict[str, int], regime: str = "normal", seed: int = 1) -> OracleRun:
    """Return the run of problem `name` on inputs drawn for `regime`."""
    problem = problems()[name]
    workload = workload_of(problem, axes)
    oracle = load_oracle(problem)
    inputs = oracle.make_inputs(workload, np.random.default_rng(seed), regime)
    return OracleRun(problem, workload, inputs, expect(name, inputs))


def expect(name: str, inputs: Inputs) -> dict[str, Expected]:
    """Return what the oracle of problem `name` expects for `inputs`."""
    problem = problems()[name]
    scalars = {scalar.name: scalar.value for scalar in problem.scalars}
    return load_oracle(problem).expected(inputs, scalars)
