"""Rotating the rows of a problem: what set k of a timed rotation holds, and what must come out.

Rows are independent of one another, so inputs whose rows moved by k give outputs whose rows moved
by k. Both functions below roll by `shift` rows towards higher row numbers (as `numpy.roll`) and
work on storage, in any dtype; they compute nothing and know no oracle.

Tensors roll along the axis named `row_axis`; an input's axis of equal length is a table that rows
look up. They also roll along axes that pad the rows, such as align_up(B, 4): their first rows roll
and the padding stays where it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError

from .expressions import expression_names
from .layouts import sf_128x4_offsets
from .problem import Problem, TensorSpec, tensor_shape
from .wide_work import copy_wide

Arrays = Mapping[str, npt.NDArray[Any]]


def rotate_inputs(
    problem: Problem,
    axes: Mapping[str, int],
    arrays: Arrays,
    shift: int,
    targets: Arrays | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return every `in` and `inout` tensor of `arrays` with its rows rolled by `shift`.

    Args:
        problem: Names the row axis and the tensors' axes.
        axes: Values of all axes.
        arrays: Tensors by name, storage shape. Those without rows come back as they are.
        shift: Rows; any integer, taken modulo the number of rows.
        targets: Arrays of the same shapes and dtypes to write to and return. Much faster than new
            ones where memory is used again: no page of it is new.
    """
    row_axes = _row_axes(problem) + padding_axes(problem)
    return _Rolling(problem, row_axes, axes, shift).rolled(arrays, targets)


def rotate_outputs(
    problem: Problem,
    axes: Mapping[str, int],
    arrays: Arrays,
    shift: int,
    targets: Arrays | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return every `out` and `inout` tensor of `arrays` with its rows rolled by `shift`.

    Masks of written elements roll in the same way. Elements outside every row (padding) keep
    their place. `targets` are those of `rotate_inputs`.

    Raises:
        ToolError: An output has an axis that is computed from the rows and does not pad them.
    """
    return _Rolling(problem, padded_row_axes(problem), axes, shift).rolled(arrays, targets)


def padded_row_axes(problem: Problem) -> tuple[str, ...]:
    """Return the axes along which rows of outputs lie: `row_axis`, and those that pad it.

    Raises:
        ToolError: An output has an axis that is computed from the rows in another way.
    """
    found = _row_axes(problem)
    if not found:
        return ()
    (rows,) = found
    names = {name for t in problem.tensors if t.role != "in" for name in t.shape}
    for name in sorted(names - {rows}):
        expression = problem.axes[name]
        if expression is None or rows not in expression_names(expression):
            continue
        if not _pads(expression, rows):
            raise ToolError(
                f"problem {problem.name}: rows of outputs cannot be found along axis "
                f"{name} = {expression}; write align_up({rows}, n) for padded rows"
            )
        found = (*found, name)
    return found


def padding_axes(problem: Problem) -> tuple[str, ...]:
    """Return the axes that pad the rows, such as align_up(B, 4): the first rows lie along them."""
    rows = problem.row_axis
    if rows is None:
        return ()
    computed = ((name, one) for name, one in problem.axes.items() if one is not None)
    return tuple(name for name, expression in computed if _pads(expression, rows))


def _pads(expression: str, rows: str) -> bool:
    return expression.replace(" ", "").startswith(f"align_up({rows},")


def _row_axes(problem: Problem) -> tuple[str, ...]:
    """Return the row axis; none where a problem has no rows, so that nothing rolls."""
    return () if problem.row_axis is None else (problem.row_axis,)


@dataclass(frozen=True)
class _Rolling:
    """How the tensors of one problem roll."""

    problem: Problem
    row_axes: tuple[str, ...]
    """`row_axis`, then those that pad it; none where the problem has no rows."""
    axes: Mapping[str, int]
    shift: int

    def rolled(self, arrays: Arrays, targets: Arrays | None) -> dict[str, npt.NDArray[Any]]:
        """Return the rolled arrays: new ones, unless they have no rows, or `targets`."""
        result: dict[str, npt.NDArray[Any]] = {}
        for name, array in arrays.items():
            if targets is None and not self._places(self.problem.tensor(name)):
                result[name] = array
                continue
            result[name] = np.empty_like(array) if targets is None else targets[name]
            self._roll_tensor(result[name], name, array)
        return result

    def _roll_tensor(self, target: npt.NDArray[Any], name: str, array: npt.NDArray[Any]) -> None:
        """Write `array`, rolled, to `target`."""
        tensor = self.problem.tensor(name)
        if tensor.layout == "row_major":
            self._roll(target, array, self._places(tensor))
            return
        *batch, rows, columns = tensor_shape(tensor, self.axes)
        offsets = sf_128x4_offsets(rows, columns)
        logical = array.reshape(*batch, -1)[..., offsets]  # (..., rows, columns)
        moved = np.empty_like(logical)
        self._roll(moved, logical, self._places(tensor))
        target[...] = array
        target.reshape(*batch, -1)[..., offsets] = moved

    def _places(self, tensor: TensorSpec) -> list[int]:
        return [place for place, name in enumerate(tensor.shape) if name in self.row_axes]

    def _roll(self, target: npt.NDArray[Any], source: npt.NDArray[Any], places: list[int]) -> None:
        """Roll the first rows along each of `places`; what lies behind them is copied."""
        if not places:
            copy_wide(target, source)
            return
        rows = self.axes[self.row_axes[0]]
        shift = self.shift % rows
        for place in places:
            to, of = np.moveaxis(target, place, 0), np.moveaxis(source, place, 0)
            copy_wide(to[shift:rows], of[: rows - shift])
            copy_wide(to[:shift], of[rows - shift : rows])
            copy_wide(to[rows:], of[rows:])
            source = target.copy() if place != places[-1] else source
