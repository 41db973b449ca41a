"""The inputs of one case: an oracle's own regimes, those derived of them, and all in one call.

`assorted` gives each row of one call another regime, in no order: code that only large shapes take
meets every regime at the cost of one case, for rows are computed independently of one another.
Integers and tensors without rows are those of `normal` inputs there.
"""

import numpy as np
import numpy.typing as npt

from .derived_regimes import (
    DERIVED_REGIMES,
    base_regime,
    derive_inputs,
    ignored_elements,
    is_row_data,
)
from .expressions import evaluate_expression
from .input_regimes import REGIMES
from .oracle import Arrays, Inputs, Oracle
from .problem import Problem, Workload

ASSORTED = "assorted"
SINGLE_REGIMES = (*REGIMES, *DERIVED_REGIMES)
"""Regimes that all rows of a call share."""
CASE_REGIMES = (*SINGLE_REGIMES, ASSORTED)
"""A case's inputs depend on its regime's place here: a new one comes last."""


def draw_inputs(
    problem: Problem, oracle: Oracle, workload: Workload, rng: np.random.Generator, regime: str
) -> Inputs:
    """Return every `in` and `inout` tensor for one of `CASE_REGIMES`.

    An oracle may name in `DERIVED_REGIMES` those that its operator is defined for; it gets
    `normal` inputs for the others.
    """
    if regime == ASSORTED:
        return _assorted(problem, oracle, workload, rng)
    if regime in REGIMES:
        return oracle.make_inputs(workload, rng, regime)
    if regime not in getattr(oracle, "DERIVED_REGIMES", DERIVED_REGIMES):
        return oracle.make_inputs(workload, rng, "normal")
    drawn = oracle.make_inputs(workload, rng, base_regime(problem, regime))
    return derive_inputs(problem, drawn, rng, regime)


def fill_ignored(problem: Problem, inputs: Arrays, regime: str) -> Inputs:
    """Return `inputs` with NaN and infinity where the problem says that it counts for nothing.

    The oracle gets the inputs without them, since 0 times NaN is NaN in float64, too.
    """
    if regime not in ("edges", ASSORTED):
        return dict(inputs)
    result = dict(inputs)
    for name, ignored in ignored_elements(problem, inputs).items():
        array = inputs[name]
        odd = np.resize(np.array([np.nan, np.inf]), array.shape[-1]).astype(array.dtype)
        result[name] = np.where(ignored, odd, array)
    return result


def _assorted(
    problem: Problem, oracle: Oracle, workload: Workload, rng: np.random.Generator
) -> Inputs:
    """Return normal inputs, rows of which are replaced by rows drawn for each other regime."""
    inputs = dict(oracle.make_inputs(workload, rng, SINGLE_REGIMES[0]))
    rows = workload.axes[problem.row_axis]
    parts = np.array_split(rng.permutation(rows), len(SINGLE_REGIMES))[1:]
    replaced = {tensor.name for tensor in problem.tensors if is_row_data(problem, tensor)}
    for regime, part in zip(SINGLE_REGIMES[1:], parts, strict=True):
        if part.size:
            smaller = _with_rows(problem, workload, part.size)
            drawn = draw_inputs(problem, oracle, smaller, rng, regime)
            for name in replaced:
                _put_rows(inputs[name], drawn[name], part, _row_place(problem, name))
    return inputs


def _with_rows(problem: Problem, workload: Workload, rows: int) -> Workload:
    axes = {**workload.axes, problem.row_axis: rows}
    for name, expression in problem.axes.items():
        if expression is not None:
            axes[name] = evaluate_expression(expression, axes)
    return workload.model_copy(update={"axes": axes})


def _row_place(problem: Problem, name: str) -> int:
    return problem.tensor(name).shape.index(problem.row_axis)


def _put_rows(
    array: npt.NDArray[np.generic],
    rows: npt.NDArray[np.generic],
    at: npt.NDArray[np.int64],
    axis: int,
) -> None:
    np.moveaxis(array, axis, 0)[at] = np.moveaxis(rows, axis, 0)
