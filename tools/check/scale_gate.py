"""Block scales: right, or one e4m3 step off beside a boundary; a window for float32 ones.

The rounding window says which exact values an honest kernel may round to each code.
"""

import numpy as np
import numpy.typing as npt

from .number_formats import magnitudes, ordinals
from .output import Finding, Output, finding_at_first
from .tolerances import CODE_WINDOW, FLOAT_SCALE_WINDOW, SCALE_STEPS


def rounding_window(
    number_format: str,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the smallest and largest magnitude accepted for each code ordinal, 0 first.

    Between the midpoints to its neighbours a code is right; roundings on the way move a value over
    a midpoint by at most `CODE_WINDOW` of it. The largest code stands for everything above.
    """
    values = magnitudes(number_format)
    middle = (values[1:] + values[:-1]) / 2
    lower = np.concatenate([[0.0], middle * (1 - CODE_WINDOW)])
    upper = np.concatenate([middle * (1 + CODE_WINDOW), [np.inf]])
    return lower, upper


def scale_gate(output: Output) -> Finding | None:
    """Refuse scales that no honest rounding order gives; the codes are judged by their own scale.

    One step is allowed because the block's largest value may have been rounded to bf16 on its way,
    which moves it across at most one decision boundary of e4m3 (3 mantissa bits), and only from
    beside that boundary. Without the second condition every scale could be one step off, and the
    smallest ones 0, under which any code passes.
    """
    indices = output.differing
    number_format = output.reference.number_format
    if number_format == "float32":
        exact = output.reference.exact_at(indices)
        allowed = FLOAT_SCALE_WINDOW * np.abs(exact) + output.reference.slack_at(indices)
        wrong = indices[~(np.abs(output.values_at(indices) - exact) <= allowed)]
        note = f"a scale may be off by {FLOAT_SCALE_WINDOW:.4f} of its exact value"
    else:
        got = ordinals(output.bits_at(indices), number_format)
        right = ordinals(output.expected_bits_at(indices), number_format)
        exact = output.reference.exact_at(indices)
        lower, upper = rounding_window(number_format)
        step = np.abs(got)
        beside = (got >= 0) & (exact >= lower[step]) & ~(exact > upper[step])
        wrong = indices[(np.abs(got - right) > SCALE_STEPS) | ~beside]
        note = (
            f"a scale may be {SCALE_STEPS} step from the correctly rounded one, and only within"
            f" {CODE_WINDOW:.4f} of a decision boundary"
        )
    return finding_at_first(output, "scale", wrong, note) if wrong.size else None
