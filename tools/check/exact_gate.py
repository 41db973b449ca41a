"""Outputs with one right answer: integers, flags, and one rounding of an exactly held sum."""

import numpy as np

from .number_formats import FLOAT_FORMATS
from .output import Finding, Output, finding_at_first


def exact_gate(output: Output) -> Finding | None:
    """Refuse every element that is not equal to the correctly rounded one.

    Equal is equal in value, so that +0 passes for -0: the two differ by the sign of a zero sum,
    which no consumer of the tensor can see. NaN equals nothing.
    """
    wrong = output.differing
    if output.reference.number_format in FLOAT_FORMATS:
        wrong = wrong[np.not_equal(output.values_at(wrong), output.expected_values_at(wrong))]
    if not wrong.size:
        return None
    note = "this output has one right answer in every honest order of operations"
    return finding_at_first(output, "exact", wrong, note)
