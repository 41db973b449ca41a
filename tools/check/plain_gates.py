"""The gates without a window of their own: numbers, one right answer, wide floats, untouched bytes.

Each refuses elements of one output, or none. NaN and infinity are refused before any tolerance is
applied; padding, masked rows and the rest of an inout tensor must keep their bytes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from .number_formats import E2M1, FLOAT_FORMATS
from .output import Finding, Output, finding_at_first, in_parts, outside_window
from .tolerances import (
    FLOAT32_LEAST_STEP,
    FLOAT32_WINDOW,
    FLOAT64_WINDOW,
)


def finite_gate(output: Output) -> Finding | None:
    """Refuse NaN anywhere, and infinity where the correctly rounded result is not the same."""
    number_format = output.reference.number_format
    if number_format == E2M1 or number_format not in FLOAT_FORMATS:
        return None
    infinite = in_parts(output.differing, lambda part: part[~np.isfinite(output.values_at(part))])
    wrong = np.concatenate(infinite)
    return finding_at_first(output, "finite", wrong, "NaN or infinity where a number is expected")


def exact_gate(output: Output) -> Finding | None:
    """Refuse every element that is not equal to the correctly rounded one.

    Equal is equal in value, so that +0 passes for -0: the two differ by the sign of a zero sum,
    which no consumer of the tensor can see. NaN equals nothing.
    """
    wrong = output.differing
    if output.reference.number_format in FLOAT_FORMATS:
        wrong = wrong[np.not_equal(output.values_at(wrong), output.expected_values_at(wrong))]
    note = "this output has one right answer in every honest order of operations"
    return finding_at_first(output, "exact", wrong, note)


def float_gate(output: Output) -> Finding | None:
    """Refuse values outside the window around the exact one; infinities must be the same."""
    number_format = output.reference.number_format
    is_single = number_format == "float32"
    window = FLOAT32_WINDOW if is_single else FLOAT64_WINDOW
    least = FLOAT32_LEAST_STEP if is_single else 0.0
    wrong = outside_window(output, output.differing, window, lambda _: least)
    note = f"a {number_format} result may be off by {window:.2g} of its exact value"
    return finding_at_first(output, number_format, wrong, note)


def untouched_gate(output: Output, initial: npt.NDArray[Any]) -> Finding | None:
    """Refuse changes of `initial` (`output.initial_bits`) outside the `written` mask."""
    written = output.reference.written
    if written is None:
        return None
    wrong = np.flatnonzero((output.bits != initial) & ~written)
    if not wrong.size:
        return None
    digits = 2 * output.bits.dtype.itemsize
    return Finding(
        gate="untouched",
        output=output,
        wrong=wrong,
        shown=int(wrong[0]),
        expected=f"unchanged bytes 0x{int(initial[wrong[0]]):0{digits}X}",
        got=f"0x{int(output.bits[wrong[0]]):0{digits}X}",
        note="elements outside the result (padding, masked rows) must keep the bytes they had;"
        " the index counts stored elements",
    )
