"""Codes of e2m1, e4m3 and e5m2 and their block scales: right, or next to right at a boundary.

With q = exact / scale, code c of magnitude v(c) is right for q between the midpoints to its
neighbours. Rounding q's intermediates moves q by a relative error that CODE_WINDOW bounds, so code
c is accepted from v's lower midpoint * (1 - window) to the upper one * (1 + window). That one
interval says "the right code, or one step off and only near a midpoint", takes ties either way,
and lets the largest code stand for everything above it, as saturation does. A scale may be one
e4m3 step off beside a boundary; float32 scales have a relative window.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError

from .number_formats import decode_bits, magnitudes, ordinals, show
from .output import Finding, Indices, Output, finding_at_first, outside_window
from .tolerances import CODE_WINDOW, FLOAT_SCALE_WINDOW, SCALE_STEPS

_BLOCK = 1 << 20  # elements judged at once: some 60 MB of temporaries


def code_gate(output: Output, scale: Output | None) -> Finding | None:
    """Refuse codes that are wrong for the scale that the candidate itself stored.

    A zero scale makes every code worth 0, so any code passes there; the unwritten test still sees
    codes that were skipped. The sign must be that of the exact value, except of a zero code:
    hardware keeps the sign of what it rounds to zero, software often drops it, both are worth 0.

    Args:
        output: The codes.
        scale: The candidate's own scales, already accepted by the scale gate; None for codes that
            round `exact` itself.
    """
    suspected = output.differing if scale is None else suspects(output, scale)
    wrong = [
        part[~_acceptable(output, scale, part)]
        for part in np.array_split(suspected, max(1, -(-suspected.size // _BLOCK)))
    ]
    refused = np.concatenate(wrong)
    return _finding(output, scale, refused) if refused.size else None


def suspects(output: Output, scale: Output) -> Indices:
    """Return codes that differ, and all codes of blocks whose scale differs, ascending."""
    scaled_by = output.reference.scaled_by
    changed = scale.differing
    if scaled_by is None or not changed.size:
        return output.differing
    codes, columns = output.reference.exact.size, output.reference.shape[-1]
    scale_index(output, scale, output.differing[:1])
    blocks = -(-columns // scaled_by.block)
    start = changed // blocks * columns + changed % blocks * scaled_by.block
    members = start[:, None] + np.arange(scaled_by.block)
    inside = members < np.minimum(codes, (changed // blocks + 1) * columns)[:, None]
    affected = members[inside]
    suspected = np.zeros(codes, dtype=np.bool_)  # a set of millions: flags, not sorting
    suspected[affected[output.is_written(affected)]] = True
    suspected[output.differing] = True
    return np.flatnonzero(suspected)


def scale_index(output: Output, scale: Output, indices: Indices) -> Indices:
    """Return the logical scale element of each logical code.

    Raises:
        ToolError: The oracle's scales do not fit its codes.
    """
    scaled_by = output.reference.scaled_by
    if scaled_by is None:
        raise ToolError(f"{output.name} has no scaled_by")
    columns = output.reference.shape[-1]
    blocks = -(-columns // scaled_by.block)
    needed = output.reference.exact.size // columns * blocks
    if scale.reference.exact.size != needed:
        raise ToolError(
            f"the oracle gives {scale.reference.exact.size} scales {scale.name!r}"
            f" for codes {output.name!r} that need {needed}"
        )
    if columns % scaled_by.block == 0:
        return indices // scaled_by.block
    return indices // columns * blocks + indices % columns // scaled_by.block


def _acceptable(output: Output, scale: Output | None, indices: Indices) -> npt.NDArray[np.bool_]:
    """Return for each code whether its scaled interval holds the exact value."""
    number_format = output.reference.number_format
    code = ordinals(output.bits_at(indices), number_format)
    exact = output.reference.exact_at(indices)
    factor: npt.NDArray[Any] | float = 1.0
    if scale is not None:
        factor = np.abs(scale.values_at(scale_index(output, scale, indices)))
    slack = output.reference.slack_at(indices)
    lower, upper = rounding_window(number_format)
    step = np.minimum(np.abs(code), lower.size - 1)  # a right infinity of e5m2
    magnitude = np.abs(exact)
    # Multiplying the bounds avoids dividing by a zero scale; inf * 0 for the largest code is NaN.
    with np.errstate(invalid="ignore"):
        above = magnitude >= lower[step] * factor - slack
        below = ~(magnitude > upper[step] * factor + slack)
    sign = (code == 0) | (np.sign(code) == np.sign(exact)) | (magnitude <= slack)
    accepted: npt.NDArray[np.bool_] = (above & below & sign) | (np.asarray(factor) == 0.0)
    return accepted


def _finding(output: Output, scale: Output | None, wrong: Indices) -> Finding:
    """Describe the first wrong code by what its own scale would have made right."""
    first = wrong[:1]
    number_format = output.reference.number_format
    exact = float(output.reference.exact_at(first)[0])
    factor = 1.0
    own_scale = ""
    if scale is not None:
        at = scale_index(output, scale, first)
        factor = float(scale.values_at(at)[0])
        own_scale = f" with the candidate's scale {factor:g}"
    quotient = exact / factor if factor else 0.0
    right = _nearest(abs(quotient), number_format)
    sign = "-" if quotient < 0 else ""
    got = output.bits_at(first)
    decoded = float(decode_bits(got, number_format)[0])
    return Finding(
        gate="code",
        output=output,
        wrong=wrong,
        shown=int(wrong[0]),
        expected=f"{sign}{right:g} (rounds {quotient:.6g}{own_scale};"
        f" worth {sign}{right * abs(factor):g})",
        got=f"{show(got[0], number_format)}; worth {decoded * factor:g}",
        note=f"a code may be one step off only within {CODE_WINDOW:.4f} of a decision boundary",
    )


def _nearest(magnitude: float, number_format: str) -> float:
    values = magnitudes(number_format)
    return float(values[np.argmin(np.abs(values - magnitude))])


def rounding_window(
    number_format: str, window: float = CODE_WINDOW
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the smallest and largest magnitude accepted for each code ordinal, 0 first.

    Between the midpoints to its neighbours a code is right; roundings on the way move a value over
    a midpoint by at most `window` of it. The largest code stands for everything above.
    """
    values = magnitudes(number_format)
    middle = (values[1:] + values[:-1]) / 2
    lower = np.concatenate([[0.0], middle * (1 - window)])
    upper = np.concatenate([middle * (1 + window), [np.inf]])
    return lower, upper


def code_scale_gate(output: Output) -> Finding | None:
    """Refuse e4m3 scales that no honest rounding order gives; codes are judged by their own scale.

    One step is allowed because the block's largest value may have been rounded to bf16 on its way,
    which moves it across at most one decision boundary of e4m3 (3 mantissa bits), and only from
    beside that boundary. Without the second condition every scale could be one step off, and the
    smallest ones 0, under which any code passes.
    """
    indices, number_format = output.differing, output.reference.number_format
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
    return finding_at_first(output, "scale", wrong, note)


def float_scale_gate(output: Output) -> Finding | None:
    """Refuse float32 scales outside the window around the exact one."""
    wrong = outside_window(output, output.differing, FLOAT_SCALE_WINDOW)
    note = f"a scale may be off by {FLOAT_SCALE_WINDOW:.4f} of its exact value"
    return finding_at_first(output, "scale", wrong, note)
