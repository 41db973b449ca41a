"""The right output, and how far honest kernels may be off, from the spread of sampled runs."""

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.oracle import Expected
from kopt.kernels.rounding import round_to_bf16, round_to_fp16

from .interpreter import FLOATS

DEVIATIONS = 8.0
"""Slack of an element, in standard deviations of honest results.

Source: tests/tools/pytorch/test_budget.py: no honest order of operations uses more than 0.9 of it.
"""
WIDE_DEVIATIONS = 12.0
"""Slack of an element of an output of more than ORDINARY_ELEMENTS, and where few runs were sampled:
of a million honest elements one is 5 deviations off, and its runs may have shown half of its own.

Source: test_budget_of_sums.py: a product with TF32 operands uses up to 8.4 with 16 runs.
"""
ORDINARY_ELEMENTS = 1 << 16
_NEIGHBOURS = 16
"""Elements with a common floor: so many share a size in `mixed`."""
_FLOOR, _FLOOR_OF_FEW_RUNS = 0.5, 1.0
"""Share of the neighbours' root mean square that is an element's least deviation: few runs know its
own to 35 %, that of 16 elements to 9 %. Of three million elements of a convolution with TF32
operands, a layer norm and a GELU, one used 10.9 deviations with three quarters of it, and 8.2 with
all of it."""


def expected_within(
    exact: npt.NDArray[np.float64],
    deviation: npt.NDArray[np.float64],
    dtype: str,
    has_few_runs: bool,
) -> Expected:
    """Return the right output, and the slack that its deviation over sampled runs leaves.

    Args:
        exact: In float64.
        deviation: Root mean square of the distances of the runs from `exact`, of its shape.
        dtype: Of the output.
        has_few_runs: Whether there were few of them.

    Raises:
        ToolError: A result that is no floating-point number depends on roundings, or roundings
            turn a result into NaN or infinity.
    """
    written = np.ones(exact.shape, dtype=np.bool_)
    if dtype not in FLOATS:
        if deviation.any():
            raise ToolError(
                f"a result of dtype {dtype} depends on roundings: no kernel can be judged by it"
            )
        return Expected(exact, exact.astype(numpy_dtype(dtype)), written, bit_exact=True)
    with np.errstate(over="ignore"):
        if dtype == "bfloat16":
            rounded = round_to_bf16(exact)
        elif dtype == "float16":
            rounded = round_to_fp16(exact)
        else:
            rounded = exact.astype(numpy_dtype(dtype))
    if not np.isfinite(deviation).all():
        raise ToolError(
            "roundings turn a result into NaN or infinity: no kernel can be judged by it"
        )
    if not deviation.any():
        return Expected(exact, rounded, written, bit_exact=True)
    deviations = WIDE_DEVIATIONS if has_few_runs or exact.size > ORDINARY_ELEMENTS else DEVIATIONS
    slack = deviations * _with_floor(deviation, _FLOOR_OF_FEW_RUNS if has_few_runs else _FLOOR)
    return Expected(exact, rounded, written, slack=slack, slack_deviations=deviations)


def _with_floor(deviation: npt.NDArray[np.float64], share: float) -> npt.NDArray[np.float64]:
    """Return deviations of at least a share of the root mean square of their neighbours.

    Few samples leave single elements far too small; neighbours along the last axis know better,
    or, where that is short, in the flattened tensor.
    """
    if deviation.ndim == 0:
        return deviation
    last = deviation.shape[-1]
    columns = last if last >= _NEIGHBOURS else deviation.size
    # What is left over at the end belongs to the last of them: two elements know as little as one.
    starts: npt.NDArray[np.int64] = _NEIGHBOURS * np.arange(max(1, columns // _NEIGHBOURS))
    counts = np.diff(starts, append=columns)
    squares = np.square(deviation.reshape(-1, columns))
    means: npt.NDArray[np.float64] = np.add.reduceat(squares, starts, axis=1) / counts
    floor: npt.NDArray[np.float64] = np.repeat(share * np.sqrt(means), counts, axis=1)
    result: npt.NDArray[np.float64] = np.maximum(deviation, floor.reshape(deviation.shape))
    return result
