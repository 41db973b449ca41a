"""Large cases at the cost of smaller ones: some rows are drawn, and the others repeat them.

Rows are computed independently of one another (`row_axis`), so that a call whose rows are those of
a smaller call, several times over, must give the smaller call's results as often. Inputs are drawn
and the oracle runs for the smaller call alone, but every row that a candidate writes is judged.

Up to `WHOLE_BYTES` ordinary inputs, those of all regimes in one call, and one in four of the other
hidden ones have rows of their own all the same: code that is right only where rows repeat must not
pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.case_inputs import (
    ASSORTED,
    CASE_REGIMES,
    SINGLE_REGIMES,
    axes_of_rows,
    with_rows,
)
from kopt.kernels.layouts import batched_sf_128x4_offsets
from kopt.kernels.problem import Problem, TensorSpec, storage_shape, tensor_shape
from kopt.kernels.row_choice import RowChoice

from .case_data import CaseData, CaseKey, Repeats, make_case_data
from .cases import MEDIUM_BYTES, buffer_bytes
from .reference import Reference, RowNoise

WHOLE_BYTES = 256 << 20
"""Bytes of all tensors up to which each row of ordinary inputs is drawn by itself."""
_ALWAYS_WHOLE = (SINGLE_REGIMES[0], ASSORTED)
_CHANCE = 1  # tells the generator of what is drawn beside the inputs from theirs
_PART = 4  # of the rows one is drawn
_MOST_BYTES = WHOLE_BYTES // _PART  # of tensors that are drawn, however many rows repeat them
_WHOLE_SHARE = 1 / _PART  # of hidden cases that are not ordinary
_FEWEST_ROWS = 3
_ROWS_A_REGIME = 4  # where the rows of a case are of different regimes

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]


def load_case(
    key: CaseKey, load: Callable[[CaseKey], CaseData] = make_case_data, *, hidden: bool = False
) -> CaseData:
    """Return the data of a case: what `load` gives, or its rows repeated.

    Args:
        key: The case.
        load: Makes or reads the data of a case.
        hidden: Whether nobody meets these inputs again, so that it pays to draw few of them.

    Raises:
        ToolError: The problem's oracle is at fault.
    """
    row_axis, rows = key.problem.row_axis, _rows_to_draw(key, hidden)
    if row_axis is None or rows is None:
        return load(key)
    smaller = replace(key, workload=with_rows(key.problem, key.workload, {row_axis: rows}))
    drawn = load(smaller)
    repeating = _Repeating(key, smaller, row_axis)
    return repeating.repeated(drawn) if repeating.is_possible(drawn) else load(key)


def _rows_to_draw(key: CaseKey, hidden: bool) -> int | None:
    """Return how many rows are drawn; None where each is drawn by itself."""
    problem, size = key.problem, buffer_bytes(key.problem, key.workload)
    is_whole = not hidden or key.regime in _ALWAYS_WHOLE or _chance(key).random() < _WHOLE_SHARE
    if size <= (WHOLE_BYTES if is_whole else MEDIUM_BYTES) or not _have_places(problem):
        return None
    rows = key.workload.axes[problem.row_axis or ""]
    drawn_bytes = min(max(size // _PART, MEDIUM_BYTES), _MOST_BYTES)
    fewest = _ROWS_A_REGIME * len(SINGLE_REGIMES) if key.regime == ASSORTED else _FEWEST_ROWS
    wanted = max(fewest, rows * drawn_bytes // size)
    if _tables(problem):  # each of whose places is used once: all rows are repeated alike
        wanted = next((n for n in range(wanted, fewest - 1, -1) if rows % n == 0), rows)
    return wanted if wanted <= rows // 2 else None


def _chance(key: CaseKey) -> np.random.Generator:
    """Return the generator of what depends on the seed beside the inputs."""
    place = CASE_REGIMES.index(key.regime)
    return np.random.default_rng([key.seed, place, *key.workload.axes.values(), _CHANCE])


def _have_places(problem: Problem) -> bool:
    """Return whether it is known where all tensors keep their rows."""
    if problem.row_axis is None:
        return False
    tables = _tables(problem)
    computed = axes_of_rows(problem, problem.row_axis) - {problem.row_axis, *tables}
    return all(
        not computed & set(tensor.shape) and _has_place(tensor, problem.row_axis)
        for tensor in problem.tensors
    ) and (not tables or _looks_up_once(problem, problem.row_axis, tables))


def _looks_up_once(problem: Problem, row_axis: str, tables: set[str]) -> bool:
    """Return whether the integers of rows can only be places in tables: one for each row."""
    of_rows = [tensor for tensor in problem.tensors if row_axis in tensor.shape]
    places = [t for t in of_rows if t.role != "out" and "int" in t.dtype]
    return (
        not any(tables & set(tensor.shape) for tensor in of_rows)
        and len(places) == 1
        and places[0].dtype in ("int32", "int64")
        and places[0].shape == (row_axis,)
    )


def _has_place(tensor: TensorSpec, row_axis: str) -> bool:
    if row_axis not in tensor.shape:
        return tensor.role == "in"
    is_last = tensor.shape[-1] == row_axis
    if tensor.layout == "sf_128x4":
        return tensor.role == "out" and not is_last
    is_packed = tensor.dtype == "uint8" and tensor.role != "in"  # maybe: two codes of two rows
    return tensor.shape.count(row_axis) == 1 and not (is_packed and is_last)


def _tables(problem: Problem) -> set[str]:
    """Return the axes, of inputs alone, that are as long as the rows: rows look up there."""
    as_long = {name for name, expression in problem.axes.items() if expression == problem.row_axis}
    return as_long - {axis for t in problem.tensors if t.role != "in" for axis in t.shape}


@dataclass(frozen=True)
class _Repeating:
    """A case, and the smaller one whose rows it repeats."""

    key: CaseKey
    smaller: CaseKey
    row_axis: str

    def is_possible(self, drawn: CaseData) -> bool:
        """Return whether the oracle's logical elements have their rows where the tensors do."""
        for name, reference in drawn.references.items():
            tensor = self.key.problem.tensor(name)
            leading = tensor.shape.index(self.row_axis) + 1
            shape = tensor_shape(tensor, self.smaller.workload.axes)
            moved = reference.offsets is not None
            if reference.shape[:leading] != shape[:leading]:
                return False
            if len(reference.shape) != len(shape) or moved != (tensor.layout == "sf_128x4"):
                return False
            if moved and not _leaves_padding(reference):
                return False
        return True

    def repeated(self, drawn: CaseData) -> CaseData:
        """Return the case with the rows of `drawn`, in an order that depends on the seed."""
        axes, fewer = self.key.workload.axes, self.smaller.workload.axes
        chance = _chance(self.key)
        order = chance.permutation(axes[self.row_axis])
        copied = order % fewer[self.row_axis]
        shuffled = chance.permutation(order.size)
        chosen = shuffled[np.unique(copied[shuffled], return_index=True)[1]]
        choice = RowChoice(self.row_axis, copied, fewer, axes)
        inputs = {name: self._input(name, a, choice, order) for name, a in drawn.inputs.items()}
        for array in inputs.values():
            array.setflags(write=False)
        problem = self.key.problem
        references = {
            name: _repeated_reference(problem.tensor(name), reference, choice)
            for name, reference in drawn.references.items()
        }
        back = _Back(self.key, drawn, references, RowChoice(self.row_axis, chosen, axes, fewer))
        return CaseData(inputs, references, repeats=Repeats(drawn, back.one_copy, back.places))

    def _input(self, name: str, array: Array, choice: RowChoice, order: Indices) -> Array:
        tensor, tables = self.key.problem.tensor(name), _tables(self.key.problem)
        fewer = choice.source[self.row_axis]
        if tables & set(tensor.shape):
            copies = order.size // fewer
            return np.tile(array, [copies if axis in tables else 1 for axis in tensor.shape])
        place = choice.place(tensor)
        if place is None:
            return array.copy()
        taken = choice.along(place, array)
        if tables and np.issubdtype(array.dtype, np.integer):  # places in a copy of the table
            at = [-1 if axis == place else 1 for axis in range(array.ndim)]
            taken += (order // fewer * fewer).astype(array.dtype).reshape(at)
        return taken


@dataclass(frozen=True)
class _Back:
    """The way from a case to the smaller one whose rows it repeats."""

    key: CaseKey
    drawn: CaseData
    references: dict[str, Reference]
    choice: RowChoice
    """One copy of each row, anywhere in the case."""

    def one_copy(self, name: str, array: Array) -> Array:
        return self.choice.stored(self.key.problem.tensor(name), array)

    def places(self, name: str, indices: Indices) -> Indices:
        place = self.choice.place(self.key.problem.tensor(name)) or 0
        places = list(np.unravel_index(indices, self.drawn.references[name].shape))
        places[place] = self.choice.rows[places[place]]
        found: Indices = np.ravel_multi_index(tuple(places), self.references[name].shape)
        return found


def _leaves_padding(reference: Reference) -> bool:
    """Return whether nothing outside the logical elements of a tiled tensor is written."""
    if reference.offsets is None or reference.offsets.size == reference.bits.size:
        return True
    if reference.written is None:
        return False
    padding = np.ones(reference.bits.size, dtype=np.bool_)
    padding[reference.offsets] = False
    return not bool((reference.written & padding).any())


def _repeated_reference(tensor: TensorSpec, small: Reference, choice: RowChoice) -> Reference:
    place = choice.place(tensor) or 0

    def along(shape: tuple[int, ...], values: Array) -> Array:
        return choice.along(place, values.reshape(shape)).reshape(-1)

    def stored(values: Array) -> Array:
        shape = storage_shape(tensor, choice.source)
        return choice.stored(tensor, values.reshape(shape)).reshape(-1)

    logical = partial(along, small.shape)
    of_rows = partial(along, small.shape[: place + 1])
    noise, unit, written = small.noise, small.unit, small.written
    if noise is not None:
        noise = RowNoise(*map(of_rows, (noise.correct_sq, noise.ulp_sq, noise.ulp_max)))
    behind = place - len(small.shape)
    if unit.ndim >= -behind and unit.shape[behind] > 1:
        unit = choice.along(behind, unit)
    offsets = None
    if small.offsets is not None:  # tiles of the larger tensor may have padding
        offsets = batched_sf_128x4_offsets(tensor_shape(tensor, choice.target)).reshape(-1)
        written = np.ones(small.bits.size, dtype=np.bool_) if written is None else written
    return replace(
        small,
        shape=(*small.shape[:place], choice.rows.size, *small.shape[place + 1 :]),
        rows=small.rows // choice.source[choice.row_axis] * choice.rows.size,
        exact=logical(small.exact),
        bits=stored(small.bits),
        written=None if written is None else stored(written),
        offsets=offsets,
        slack=None if small.slack is None else logical(small.slack),
        unit=unit,
        noise=noise,
    )
