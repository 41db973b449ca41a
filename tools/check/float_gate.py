"""Float32 outputs that are results, not block scales: a relative window plus the oracle's slack."""

import numpy as np

from .output import Finding, Output, finding_at_first
from .tolerances import FLOAT32_WINDOW


def float_gate(output: Output) -> Finding | None:
    """Refuse values outside the window around the exact one; infinities must be the same."""
    indices = output.differing
    exact = output.reference.exact_at(indices)
    allowed = FLOAT32_WINDOW * np.abs(exact) + output.reference.slack_at(indices)
    with np.errstate(invalid="ignore"):
        close = np.abs(output.values_at(indices) - exact) <= allowed
    wrong = indices[~close | ~np.isfinite(exact)]
    note = f"a float32 result may be off by {FLOAT32_WINDOW:.2g} of its exact value"
    return finding_at_first(output, "float32", wrong, note) if wrong.size else None
