"""What the buffer sets of a timed rotation hold: other inputs in each, as far as there are others.

Where a problem has rows, there is one draw of inputs, and set k holds it with its rows rotated by
k (`row_rotation.py`). Where it has none, nothing can be rotated: there are several draws, which
take turns, each with an oracle result of its own. Sets are counted here by their contents, 0 to
`distinct_contents`; where they lie is the worker's matter.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from .problem import Problem, Workload, tensor_size_bytes
from .row_rotation import Arrays, rotate_inputs, rotate_outputs

DRAWS = 4
"""Draws of inputs where a problem has no rows; fewer only where there are fewer sets."""
L2_MULTIPLE = 4
"""The sets together hold this many times what L2 does."""
USUAL_SETS, FEWEST_SETS = 8, 2
_REPLAY_L2 = USUAL_SETS * L2_MULTIPLE
"""A replay of fewer sets than usual moves this many times what L2 holds."""


def fewest_sets(set_bytes: int, l2_bytes: int) -> int:
    """Return how many sets a replay needs: 8, and down to 2 where one passes four times L2.

    Fewer calls would be too short for the events around them; of larger sets few are long enough.
    """
    return max(FEWEST_SETS, min(USUAL_SETS, -(-_REPLAY_L2 * l2_bytes // set_bytes)))


def wanted_sets(set_bytes: int, l2_bytes: int) -> int:
    """Return how many sets a rotation wants, so that each call finds its data in memory."""
    return max(fewest_sets(set_bytes, l2_bytes), -(-L2_MULTIPLE * l2_bytes // set_bytes))


def draw_count(problem: Problem, workload: Workload, l2_bytes: int) -> int:
    """Return how many draws of inputs are timed: one where rows rotate."""
    if problem.row_axis is not None:
        return 1
    set_bytes = sum(tensor_size_bytes(tensor, workload.axes) for tensor in problem.tensors)
    return min(DRAWS, wanted_sets(set_bytes, l2_bytes))


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
