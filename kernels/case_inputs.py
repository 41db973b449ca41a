"""The inputs of one case: an oracle's own regimes, those derived of them, and all in one call.

`assorted` gives each row of one call another regime, in no order: code that only large shapes take
meets every regime at the cost of one case, for rows are computed independently of one another.
Codes of fp8 and tensors along padded rows, such as their scales, come with their row. Integers and
tensors without rows are those of `normal` inputs there, but weights have both signs.
"""

import numpy as np
import numpy.typing as npt

from .derived_regimes import (
    DERIVED_REGIMES,
    base_regime,
    derive_inputs,
    is_row_data,
    signed_weights,
)
from .dtypes import numpy_dtype
from .expressions import evaluate_expression, expression_names
from .ignored_elements import ignored_elements
from .input_regimes import REGIMES
from .oracle import Arrays, Inputs, Oracle, served_regimes
from .problem import Problem, TensorSpec, Workload, storage_shape
from .row_rotation import padding_axes

ASSORTED = "assorted"
SINGLE_REGIMES = (*REGIMES, *DERIVED_REGIMES)
"""Regimes that all rows of a call share."""
CASE_REGIMES = (*SINGLE_REGIMES, ASSORTED)
"""A case's inputs depend on its regime's place here: a new one comes last."""


def draw_inputs(
    problem: Problem, oracle: Oracle, workload: Workload, rng: np.random.Generator, regime: str
) -> Inputs:
    """Return every `in` and `inout` tensor for one of `CASE_REGIMES`.

    An oracle may name in `DERIVED_REGIMES` those that its operator is defined for, and in `REGIMES`
    those that it draws; it gets `normal` inputs for the others.
    """
    if regime == ASSORTED and problem.row_axis is not None:
        return _assorted(problem, problem.row_axis, oracle, workload, rng)
    served = served_regimes(oracle)
    if regime in REGIMES:
        return oracle.make_inputs(workload, rng, regime if regime in served else "normal")
    if regime not in _derived(oracle):
        return oracle.make_inputs(workload, rng, "normal")
    base = base_regime(problem, regime)
    drawn = oracle.make_inputs(workload, rng, base if base in served else "normal")
    return derive_inputs(problem, drawn, rng, regime)


def drawn_regimes(oracle: Oracle) -> tuple[str, ...]:
    """Return the regimes of one call that a check asks for: without those that no oracle draws."""
    served = served_regimes(oracle)
    return tuple(one for one in SINGLE_REGIMES if one in served or one not in REGIMES)


def regimes_left_out(problem: Problem, oracle: Oracle) -> tuple[str, ...]:
    """Return the regimes of which no case is made: the oracle, or the problem, has none."""
    known = {*served_regimes(oracle), *_derived(oracle)}
    if problem.row_axis is not None:
        known.add(ASSORTED)
    return tuple(one for one in CASE_REGIMES if one not in known)


def _derived(oracle: Oracle) -> tuple[str, ...]:
    named: tuple[str, ...] = getattr(oracle, "DERIVED_REGIMES", DERIVED_REGIMES)
    return named


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
    problem: Problem, row_axis: str, oracle: Oracle, workload: Workload, rng: np.random.Generator
) -> Inputs:
    """Return inputs whose rows are drawn for each regime; the rest is that of normal inputs."""
    regimes = drawn_regimes(oracle)
    parts = np.array_split(rng.permutation(workload.axes[row_axis]), len(regimes))
    places = {tensor.name: _place_of_rows(problem, tensor) for tensor in problem.tensors}
    replaced = {name: place for name, place in places.items() if place is not None}
    given = [tensor for tensor in problem.tensors if tensor.role != "out"]
    of_rows = _axes_of_rows(problem, row_axis)
    if all(tensor.name in replaced for tensor in given if of_rows & set(tensor.shape)):
        inputs = {
            tensor.name: np.zeros(storage_shape(tensor, workload.axes), numpy_dtype(tensor.dtype))
            for tensor in given
        }
    else:  # integers of all rows are drawn at once, and what goes with them
        inputs = dict(oracle.make_inputs(workload, rng, regimes[0]))
        parts[0] = parts[0][:0]
    for regime, part in zip(regimes, parts, strict=True):
        if not part.size:
            continue
        smaller = with_rows(problem, workload, {row_axis: part.size})
        drawn = draw_inputs(problem, oracle, smaller, rng, regime)
        for name, place in replaced.items():
            _put_rows(inputs[name], drawn[name], part, place)
        if regime == regimes[0]:
            inputs |= {name: drawn[name] for name in drawn.keys() - replaced.keys()}
    if "channels" in _derived(oracle):
        inputs |= signed_weights(problem, inputs, rng)
    return inputs


def _place_of_rows(problem: Problem, tensor: TensorSpec) -> int | None:
    """Return which axis of an input holds the rows that one call is given; None where none does.

    Beside the data that regimes are derived of these are codes of fp8, and floating-point values
    along an axis that pads the rows: what an oracle draws for a row belongs together.
    """
    if is_row_data(problem, tensor):
        return tensor.shape.index(problem.row_axis or "")
    is_row_major = tensor.layout == "row_major" and tensor.dtype.startswith(("float", "bfloat"))
    if tensor.role == "out" or tensor.static or not is_row_major:
        return None
    rows = {problem.row_axis, *padding_axes(problem)}
    return next((place for place, axis in enumerate(tensor.shape) if axis in rows), None)


def _axes_of_rows(problem: Problem, row_axis: str) -> set[str]:
    """Return the row axis and those that are computed from it."""
    found = {row_axis}
    for name, expression in problem.axes.items():
        if expression is not None and found & set(expression_names(expression)):
            found.add(name)
    return found


def with_rows(problem: Problem, workload: Workload, rows: dict[str, int]) -> Workload:
    """Return `workload` with other values of some variable axes, and what is computed from them."""
    axes = {**workload.axes, **rows}
    for name, expression in problem.axes.items():
        if expression is not None:
            axes[name] = evaluate_expression(expression, axes)
    return workload.model_copy(update={"axes": axes})


def _put_rows(
    array: npt.NDArray[np.generic],
    rows: npt.NDArray[np.generic],
    at: npt.NDArray[np.int64],
    axis: int,
) -> None:
    np.moveaxis(array, axis, 0)[at] = np.moveaxis(rows, axis, 0)[: at.size]
