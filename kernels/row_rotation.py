"""Rotating the rows of a problem: what set k of a timed rotation holds, and what must come out.

Rows are independent of one another, so inputs whose rows moved by k give outputs whose rows moved
by k. Both functions below roll by `shift` rows towards higher row numbers (as `numpy.roll`) and
work on storage, in any dtype; they compute nothing and know no oracle.

Inputs roll along the axis named `row_axis` alone: an axis of equal length is a table that rows
look up. Outputs also roll along axes that pad the rows, such as align_up(B, 4): their first rows
roll and the padding stays where it is.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError

from .expressions import expression_names
from .layouts import sf_128x4_offsets
from .problem import Problem, TensorSpec, tensor_shape

Arrays = Mapping[str, npt.NDArray[Any]]


def rotate_inputs(
    problem: Problem, axes: Mapping[str, int], arrays: Arrays, shift: int
) -> dict[str, npt.NDArray[Any]]:
    """Return every `in` and `inout` tensor of `arrays` with its rows rolled by `shift`.

    Args:
        problem: Names the row axis and the tensors' axes.
        axes: Values of all axes.
        arrays: Tensors by name, storage shape. Those without rows come back as they are.
        shift: Rows; any integer, taken modulo the number of rows.
    """
    return {
        name: _rotated(array, problem.tensor(name), (problem.row_axis,), axes, shift)
        for name, array in arrays.items()
    }


def rotate_outputs(
    problem: Problem, axes: Mapping[str, int], arrays: Arrays, shift: int
) -> dict[str, npt.NDArray[Any]]:
    """Return every `out` and `inout` tensor of `arrays` with its rows rolled by `shift`.

    Masks of written elements roll in the same way. Elements outside every row (padding) keep
    their place.

    Raises:
        ToolError: An output has an axis that is computed from the rows and does not pad them.
    """
    padded = padded_row_axes(problem)
    return {
        name: _rotated(array, problem.tensor(name), padded, axes, shift)
        for name, array in arrays.items()
    }


def padded_row_axes(problem: Problem) -> tuple[str, ...]:
    """Return the axes along which rows of outputs lie: `row_axis`, and those that pad it.

    Raises:
        ToolError: An output has an axis that is computed from the rows in another way.
    """
    found = [problem.row_axis]
    names = {name for t in problem.tensors if t.role != "in" for name in t.shape}
    for name in sorted(names - {problem.row_axis}):
        expression = problem.axes[name]
        if expression is None or problem.row_axis not in expression_names(expression):
            continue
        if not expression.replace(" ", "").startswith(f"align_up({problem.row_axis},"):
            raise ToolError(
                f"problem {problem.name}: rows of outputs cannot be found along axis "
                f"{name} = {expression}; write align_up({problem.row_axis}, n) for padded rows"
            )
        found.append(name)
    return tuple(found)


def _rotated(
    array: npt.NDArray[Any],
    tensor: TensorSpec,
    row_axes: tuple[str, ...],
    axes: Mapping[str, int],
    shift: int,
) -> npt.NDArray[Any]:
    places = [place for place, name in enumerate(tensor.shape) if name in row_axes]
    if not places:
        return array
    rows = axes[row_axes[0]]
    if tensor.layout == "row_major":
        return _rolled(array, places, rows, shift)
    *batch, matrix_rows, columns = tensor_shape(tensor, axes)
    offsets = sf_128x4_offsets(matrix_rows, columns)
    logical = array.reshape(*batch, -1)[..., offsets]  # (..., rows, columns)
    result = array.copy()
    result.reshape(*batch, -1)[..., offsets] = _rolled(logical, places, rows, shift)
    return result


def _rolled(array: npt.NDArray[Any], places: list[int], rows: int, shift: int) -> npt.NDArray[Any]:
    """Return `array` with its first `rows` entries along each of `places` rolled by `shift`."""
    result = array
    for place in places:
        head, padding = np.split(result, [rows], axis=place)
        result = np.concatenate((np.roll(head, shift, axis=place), padding), axis=place)
    return result
