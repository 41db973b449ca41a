"""NaN and infinity where the right answer is a number: refused before any tolerance is applied."""

import numpy as np

from .number_formats import E2M1, FLOAT_FORMATS
from .output import Finding, Output, finding_at_first


def finite_gate(output: Output) -> Finding | None:
    """Refuse NaN anywhere, and infinity where the correctly rounded result is not the same."""
    number_format = output.reference.number_format
    if number_format == E2M1 or number_format not in FLOAT_FORMATS:
        return None
    indices = output.differing
    wrong = indices[~np.isfinite(output.values_at(indices))]
    if not wrong.size:
        return None
    return finding_at_first(output, "finite", wrong, "NaN or infinity where a number is expected")
