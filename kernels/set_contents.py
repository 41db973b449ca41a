"""What the buffer sets of a timed rotation hold: other inputs in each, as far as there are others.

Where a problem has rows, there is one draw of inputs, and set k holds it with its rows rotated by
k (`row_rotation.py`). Where it has none, nothing can be rotated: there are several draws, which
take turns, each with an oracle result of its own. Sets are counted here by their contents, 0 to
`distinct_contents`; where they lie is the worker's matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from .dtypes import dtype_size_bytes
from .expressions import evaluate_expression
from .problem import Problem, Workload, tensor_size_bytes
from .row_rotation import Arrays, rotate_inputs, rotate_outputs

DRAWS = 4
"""Draws of inputs where a problem has no rows; fewer only where there are fewer sets."""
L2_MULTIPLE = 4
"""The sets together hold this many times what L2 does."""
USUAL_SETS, FEWEST_SETS = 8, 2
_REPLAY_L2 = USUAL_SETS * L2_MULTIPLE
"""A replay of fewer sets than usual lasts as long as memory takes for this many times L2."""
_OPERATIONS_PER_BYTE = 600
"""Most operations of tensor cores on elements of one byte while memory moves a byte: 1,979 TFLOP/s
and 3.35 TB/s of the H100's data sheet. The element's size divides it."""


@dataclass(frozen=True)
class CallWork:
    """What decides how many buffer sets a replay needs."""

    set_bytes: int
    """Tensors of one call."""
    call_bytes: int
    """What memory moves in the least time of a call: its tensors, or more where the products of
    matrices in it take longer."""


def call_work(problem: Problem, axes: Mapping[str, int]) -> CallWork:
    """Return the work of one call of `problem` at these axes."""
    set_bytes = sum(tensor_size_bytes(tensor, axes) for tensor in problem.tensors)
    element_bytes = min(dtype_size_bytes(tensor.dtype) for tensor in problem.tensors)
    operations = evaluate_expression(problem.matrix_flops, axes)
    return CallWork(set_bytes, max(set_bytes, operations * element_bytes // _OPERATIONS_PER_BYTE))


def fewest_sets(work: CallWork, l2_bytes: int) -> int:
    """Return how many sets a replay needs: 8, and down to 2 where a call takes long.

    Fewer calls would be too short for the events around them; of long ones few are enough.
    """
    return max(FEWEST_SETS, min(USUAL_SETS, -(-_REPLAY_L2 * l2_bytes // work.call_bytes)))


def wanted_sets(work: CallWork, l2_bytes: int) -> int:
    """Return how many sets a rotation wants, so that each call finds its data in memory."""
    beside = -(-L2_MULTIPLE * l2_bytes // work.set_bytes)
    # Of few sets the call's own counts: where tensors alone decide, fewer than 8 are larger ones.
    own = 1 if work.call_bytes > work.set_bytes else 0
    return max(fewest_sets(work, l2_bytes), beside + own)


def draw_count(problem: Problem, workload: Workload, l2_bytes: int) -> int:
    """Return how many draws of inputs are timed: one where rows rotate."""
    if problem.row_axis is not None:
        return 1
    return min(DRAWS, wanted_sets(call_work(problem, workload.axes), l2_bytes))


def distinct_contents(problem: Problem, axes: Mapping[str, int], draws: int) -> int:
    """Return how many sets differ: as many as there are rows, or draws."""
    return draws if problem.row_axis is None else axes[problem.row_axis]


def inputs_of_set(
    problem: Problem,
    axes: Mapping[str, int],
    drawn: Sequence[Arrays],
    contents: int,
    targets: Arrays | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the inputs of the sets with these contents; `drawn` are the inputs of each draw.

    `targets` are those of `rotate_inputs`.
    """
    draw, shift = _place(problem, contents)
    return rotate_inputs(problem, axes, drawn[draw], shift, targets)


def outputs_of_set(
    problem: Problem,
    axes: Mapping[str, int],
    checked: Sequence[Arrays],
    contents: int,
    targets: Arrays | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the right outputs of the sets with these contents; `checked` are those of each draw.

    `targets` are those of `rotate_outputs`.
    """
    draw, shift = _place(problem, contents)
    return rotate_outputs(problem, axes, checked[draw], shift, targets)


def as_drawn(
    problem: Problem, axes: Mapping[str, int], outputs: Arrays, contents: int
) -> tuple[int, dict[str, npt.NDArray[Any]]]:
    """Return the draw of a set with these contents, and its outputs in the draw's order of rows."""
    draw, shift = _place(problem, contents)
    return draw, rotate_outputs(problem, axes, outputs, -shift)


def _place(problem: Problem, contents: int) -> tuple[int, int]:
    """Return the draw, and the rows by which it is rotated."""
    return (contents, 0) if problem.row_axis is None else (0, contents)
