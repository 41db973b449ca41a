"""By how many rounding steps each element of an output is too large or too small.

Positive is away from zero. What lies within 2^-16 of a decision boundary, or within the oracle's
slack of it, counts as right: ties may go either way, and float32 arithmetic moves values by less.
"""

import numpy as np
import numpy.typing as npt

from kopt.kernels.rounding import decode, round_to_bf16

from .code_gate import rounding_window, scale_index, suspects
from .number_formats import CODE_FORMATS, HALF_FORMATS, half_ulp, ordinals
from .output import Indices, Output, in_parts
from .tolerances import BF16_STEP, FLOAT32_WINDOW

Steps = npt.NDArray[np.float64]

STEPS_PER_UNIT = {
    "bfloat16": 192.0,
    "float16": 1536.0,
    "float32": 1 / BF16_STEP,
    "float8_e4m3fn": 12.0,
    "float8_e5m2": 6.0,
    "e2m1": 3.0,
}
"""What a value is worth in its own steps, in the middle of a binade, by number format. A float32
has no step that matters here: block scales are counted in `BF16_STEP` of their value."""


def signed_errors(
    output: Output, scale: Output | None, exact: Steps | None = None
) -> tuple[Indices, Steps]:
    """Return the elements that are off, ascending, and by how many steps each is.

    Args:
        output: Of a format in `STEPS_PER_UNIT`, and without NaN.
        scale: The candidate's own scales of codes that have some.
        exact: For codes, what they round instead of the reference's exact values.
    """
    number_format = output.reference.number_format
    if exact is not None:
        indices = np.flatnonzero(output.is_written(np.arange(exact.size)))
        steps = _code_steps(output, scale, indices, exact[indices])
    elif number_format in CODE_FORMATS:
        indices = output.differing if scale is None else suspects(output, scale)
        steps = _code_steps(output, scale, indices, output.reference.exact_at(indices))
    else:
        steps_of = _half_steps if number_format in HALF_FORMATS else _scale_steps
        found = in_parts(output.differing, lambda part: _off(part, steps_of(output, part)))
        return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])
    return _off(indices, steps)


def _off(indices: Indices, steps: Steps) -> tuple[Indices, Steps]:
    off = steps != 0
    return indices[off], steps[off]


def _half_steps(output: Output, indices: Indices) -> Steps:
    number_format = output.reference.number_format
    exact = output.reference.exact_at(indices)
    got = ordinals(output.bits_at(indices), number_format)
    right = ordinals(output.expected_bits_at(indices), number_format)
    allowed = half_ulp(exact, number_format) / 2 + FLOAT32_WINDOW * np.abs(exact)
    error = np.abs(output.values_at(indices) - exact) - output.reference.slack_at(indices)
    steps: Steps = np.where(error > allowed, np.sign(right) * (got - right), 0).astype(np.float64)
    return steps


def _scale_steps(output: Output, indices: Indices) -> Steps:
    exact = output.reference.exact_at(indices)
    error = output.values_at(indices) - exact
    off = np.abs(error) > FLOAT32_WINDOW * np.abs(exact) + output.reference.slack_at(indices)
    relative = np.divide(error, exact, out=np.zeros_like(error), where=off & (exact != 0))
    return relative / BF16_STEP


def _code_steps(output: Output, scale: Output | None, indices: Indices, values: Steps) -> Steps:
    reference = output.reference
    code = np.abs(ordinals(output.bits_at(indices), reference.number_format))
    exact = np.abs(values)
    factor = np.ones(indices.size)
    if scale is not None:
        factor = np.abs(scale.values_at(scale_index(output, scale, indices)))
    slack = reference.slack_at(indices)
    lower, upper = rounding_window(reference.number_format, FLOAT32_WINDOW)
    with np.errstate(invalid="ignore"):
        too_large = exact < lower[code] * factor - slack
        too_small = (exact > upper[code] * factor + slack) & (factor > 0)
    steps: Steps = too_large.astype(np.float64) - too_small
    return steps


_MOST_ELEMENTS = 1 << 22  # beyond, half a GB of temporaries


def errors_if_rounded_before(
    output: Output, scale: Output | None, codes: Output | None
) -> tuple[Indices, Steps] | None:
    """Return the same of codes, or of their scales, if the result was rounded to bf16 before.

    That rounding, too, may go either way next to a tie. None where nobody says what one unit of the
    codes is worth, or there are too many.

    Args:
        output: Codes, or scales of codes.
        scale: The candidate's own scales of codes that have some.
        codes: For scales, the codes that are read through them.
    """
    ends = [_rounded_before(output, codes, 1 + one) for one in (-FLOAT32_WINDOW, FLOAT32_WINDOW)]
    low, high = (None if end is None else signed_errors(output, scale, end) for end in ends)
    if low is None or high is None:
        return None
    indices, of_low, of_high = np.intersect1d(
        low[0], high[0], assume_unique=True, return_indices=True
    )
    one, other = low[1][of_low], high[1][of_high]
    return indices, np.where(np.abs(one) < np.abs(other), one, other)


def _rounded_before(output: Output, codes: Output | None, factor: float) -> Steps | None:
    """Return what codes or their scales round if the result was rounded to bf16 before.

    None where nobody says what one unit of the codes is worth, or there are too many.

    Args:
        output: Codes, or scales of codes.
        codes: For scales, the codes that are read through them.
        factor: What the exact results are multiplied by before they are rounded.
    """
    reference = (codes or output).reference
    scaled_by = reference.scaled_by
    is_known = scaled_by is not None or bool((reference.unit != 1.0).all())
    if not is_known or reference.exact.size > _MOST_ELEMENTS:
        return None
    unit = np.broadcast_to(reference.unit, reference.shape).reshape(-1)
    exact = reference.exact.astype(np.float64)
    rounded: Steps = decode(round_to_bf16(exact * unit * factor)) / unit
    if codes is None or scaled_by is None:
        return rounded
    if reference.shape[-1] % scaled_by.block:
        return None
    before, after = (np.abs(v).reshape(-1, scaled_by.block).max(axis=1) for v in (exact, rounded))
    moved: Steps = output.reference.exact.astype(np.float64) * np.divide(
        after, before, out=np.ones_like(before), where=before > 0
    )
    return moved
