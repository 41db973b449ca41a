"""The rows of a large timed shape that are judged: some that nobody knows beforehand, not all.

Tensors of a workload with `use: time` may hold gigabytes, whose right results in float64 take
minutes and more memory than the machine has. Rows do not depend on one another, so that an oracle
with `computed_values` can be asked for some of them alone: the first, the last, and others that
follow from the case's seed, which is drawn after the binary is fixed but for the visible ones. No
other row may have NaN, or hold what was there before, and a benchmark compares all of them with
those of the reference kernel (tools/bench/whole_rows.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.case_inputs import with_rows
from kopt.kernels.expressions import evaluate_expression, expression_names
from kopt.kernels.oracle import Arrays, computed_values
from kopt.kernels.problem import Problem, Workload, storage_shape
from kopt.kernels.wide_work import run_wide, slices

ALL_ELEMENTS = 1 << 23
"""Elements of all tensors up to which every row is judged, 32 MiB of float32: what so many rows
hold is what the judged ones hold at the most, unless they are the fewest."""
ALL_VALUES = 1 << 23
"""Values on the way to the results up to which every row is judged: each costs an oracle of sampled
runs 60 ns a run."""
ALL_FLOPS = 1 << 35
"""Operations of products of matrices up to which every row is judged; an oracle makes several times
as many in float64."""
FEWEST_ROWS = 3
"""The first, the last and one that nobody knows, however large a row is."""
_PART_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class JudgedRows:
    """Some rows of a workload."""

    rows: npt.NDArray[np.int64]
    """Their numbers, ascending."""
    total: int
    """Rows of the workload."""
    places: Mapping[str, int]
    """Which axis of a tensor counts the rows; a tensor without rows is missing."""

    def take(self, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Return the judged rows of each array; one without rows as it is."""
        return {
            name: np.take(array, self.rows, self.places[name]) if name in self.places else array
            for name, array in arrays.items()
        }

    def index_in_whole(self, name: str, index: tuple[int, ...]) -> tuple[int, ...]:
        """Return where an element of the judged rows lies in the whole tensor `name`."""
        place = self.places[name]
        return (*index[:place], int(self.rows[index[place]]), *index[place + 1 :])

    def row_in_whole(self, name: str, index: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """Return the row of an element: its place in the leading axes, up to that of the rows.

        Args:
            name: The tensor.
            index: Of the element in the whole tensor.
            shape: Of the judged rows.
        """
        place = self.places[name]
        leading = (*shape[:place], self.total)
        return int(np.ravel_multi_index(index[: place + 1], leading))

    def stray_row(self, name: str, array: npt.NDArray[Any]) -> int | None:
        """Return the first row of a floating-point tensor that has NaN; None without."""
        flat = array.reshape(-1)

        def first_in(part: slice) -> int | None:
            is_nan = np.isnan(flat[part])
            return part.start + int(np.argmax(is_nan)) if is_nan.any() else None

        found = run_wide(first_in, slices(array.size, _PART_ELEMENTS))
        first = next((one for one in found if one is not None), None)
        return None if first is None else self.row_of(name, first, array.shape)

    def row_of(self, name: str, flat_index: int, shape: tuple[int, ...]) -> int:
        """Return the row that an element of the whole tensor `name` lies in."""
        return int(np.unravel_index(flat_index, shape)[self.places[name]])


def judged_count(problem: Problem, workload: Workload) -> int | None:
    """Return how many rows of `workload` are judged in a case; None if all of them are.

    Raises:
        ToolError: As of `load_oracle`.
    """
    places = _places(problem) if workload.use == "time" else None
    if places is None or problem.row_axis is None:
        return None
    total = workload.axes[problem.row_axis]
    sizes = (prod(storage_shape(t, workload.axes)) for t in problem.tensors if t.name in places)
    flops = evaluate_expression(problem.matrix_flops, workload.axes)
    values = computed_values(problem, workload)
    if values is None:
        return None
    share = max(sum(sizes) / ALL_ELEMENTS, values / ALL_VALUES, flops / ALL_FLOPS)
    count = max(FEWEST_ROWS, int(total / share)) if share > 1 else total
    return count if count < total else None


def judged_share(problem: Problem, workload: Workload) -> float:
    """Return the share of the rows of `workload` that is judged."""
    count = judged_count(problem, workload)
    return 1.0 if count is None else count / workload.axes[problem.row_axis or ""]


def draw_judged_rows(
    problem: Problem, workload: Workload, rng: np.random.Generator
) -> JudgedRows | None:
    """Return the first row, the last, and others; None if all are judged.

    Args:
        problem: Its oracle says whether some rows can be judged alone.
        workload: One that is there to be timed.
        rng: Of the case's seed: with a hidden one nobody can know the rows.

    Raises:
        ToolError: As of `load_oracle`.
    """
    count = judged_count(problem, workload)
    if count is None:
        return None
    total, places = workload.axes[problem.row_axis or ""], _places(problem)
    inner = 1 + rng.choice(total - 2, count - 2, replace=False)
    rows = np.sort(np.concatenate([[0], inner, [total - 1]])).astype(np.int64)
    return JudgedRows(rows, total, places or {})


def judged_workload(problem: Problem, workload: Workload, judged: JudgedRows) -> Workload:
    """Return `workload` with as many rows as are judged."""
    return with_rows(problem, workload, {problem.row_axis or "": len(judged.rows)})


def _places(problem: Problem) -> dict[str, int] | None:
    """Return the axis of the rows in each tensor that has rows; None where some cannot be taken.

    That is so where they are padded or permuted, stand twice in a shape, or are changed in place,
    and where an output has none.
    """
    rows = problem.row_axis
    if rows is None:
        return None
    computed = [one for one in problem.axes.values() if one is not None]
    if any(rows in expression_names(one) for one in computed):
        return None
    found: dict[str, int] = {}
    for tensor in problem.tensors:
        count = tensor.shape.count(rows)
        is_plain = tensor.layout == "row_major" and tensor.role != "inout"
        if count > 1 or not is_plain or (tensor.role == "out" and not count):
            return None
        if count:
            found[tensor.name] = tensor.shape.index(rows)
    return found
