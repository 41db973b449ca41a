"""Outputs of 16 bits: error against the exact value in units of what correct rounding leaves.

Three bounds, each finds what the others miss: steps per element (one wrong value), error per row
(one coarse row), error of the whole (a coarse method everywhere). Where the oracle says that
results are rounded once, one bound stands in their place: each element is the rounding of some
value within the slack.

The unit is the larger of two: the error of the correctly rounded result, and what rounding leaves
to values spread evenly between neighbours, sum(ulp^2) / 12. The second is there for rows that hold
representable values, where the first is near 0 and any honest error would be infinitely worse. A
row's bound also leaves room for one element of the largest size at the edge of what the element
bound allows: in a row with one dominating outlier the error is that element's alone, and no
average.
"""

import numpy as np
import numpy.typing as npt

from kopt.kernels.rounding import round_to_bf16, round_to_fp16

from .number_formats import half_step, half_ulp, ordinals, storage_bits
from .output import Finding, Indices, Output, finding_at, finding_at_first, outside_window
from .reference import RowNoise
from .tolerances import (
    BUDGET_RATIO,
    HALF_ELEMENT_ULP,
    HALF_MAX_ULP,
    HALF_ROW_RATIO,
    HALF_TOTAL_RATIO,
    HALF_WINDOW_ROUNDINGS,
)

_SHORT = {"bfloat16": "bf16", "float16": "fp16"}


def half_gate(output: Output) -> Finding | None:
    """Refuse elements, rows or a whole that no honest order of roundings gives."""
    noise = output.reference.noise
    if noise is None or not output.differing.size:
        return None
    if output.reference.one_rounding:
        note = (
            "this output is rounded once, from sums in fp32 or wider: an element must be the"
            " rounding of a value within their error of the exact one"
        )
        return finding_at_first(output, "one_rounding", _rounded_before(output), note)
    refused = _far_elements(output)
    name = output.reference.number_format
    note = (
        f"an element may be {HALF_MAX_ULP} {_SHORT[name]} steps from the correctly rounded"
        f" one, or {_window(name):.4f} and half an ulp from the exact value"
    )
    far = finding_at_first(output, "ulp", refused, note)
    if far is not None:
        return far
    row_sq = _row_error_sq(output, noise)
    # The whole first: a coarse method fails both bounds, and "every row" says less than the cause.
    total = _over_total(output, noise, row_sq)
    return total if total is not None else _over_rows(output, noise, row_sq)


def half_error_ratio(output: Output) -> float | None:
    """Return the whole error in units of correct rounding's; None for other formats."""
    noise = output.reference.noise
    if noise is None:
        return None
    unit = _unit_sq(noise)
    if unit == 0.0:
        return 0.0
    return float(np.sqrt(_row_error_sq(output, noise).sum() / unit))


def half_row_ratios(output: Output) -> npt.NDArray[np.float64] | None:
    """Return each row's error in units of correct rounding's; None for other formats."""
    noise = output.reference.noise
    if noise is None:
        return None
    row_sq, unit = _row_error_sq(output, noise), _row_unit_sq(noise)
    ratios: npt.NDArray[np.float64] = np.sqrt(
        np.divide(row_sq, unit, out=np.zeros_like(unit), where=unit > 0)
    )
    return ratios


def _window(number_format: str) -> float:
    return HALF_WINDOW_ROUNDINGS * half_step(number_format)


def _far_elements(output: Output) -> Indices:
    indices, number_format = output.differing, output.reference.number_format
    got = ordinals(output.bits_at(indices), number_format)
    right = ordinals(output.expected_bits_at(indices), number_format)
    far = indices[np.abs(got - right) > HALF_MAX_ULP]
    window = _window(number_format)
    return outside_window(output, far, window, lambda exact: half_ulp(exact, number_format) / 2)


def _rounded_before(output: Output) -> Indices:
    """Return the elements that no value within the slack of the exact one rounds to."""
    indices, reference = output.differing, output.reference
    exact, slack = reference.exact_at(indices), reference.slack_at(indices)
    to_format = round_to_bf16 if reference.number_format == "bfloat16" else round_to_fp16
    low, high = (
        ordinals(storage_bits(to_format(end)), reference.number_format)
        for end in (exact - slack, exact + slack)
    )
    got = ordinals(output.bits_at(indices), reference.number_format)
    refused: Indices = indices[(got < low) | (got > high)]
    return refused


def _row_error_sq(output: Output, noise: RowNoise) -> npt.NDArray[np.float64]:
    """Return each row's squared error: correct rounding's, corrected where bits differ."""
    indices = output.differing
    exact = output.reference.exact_at(indices)
    error = np.abs(output.values_at(indices) - exact)
    if output.reference.slack_deviations is None:
        error = error - output.reference.slack_at(indices)
    correct = output.expected_values_at(indices) - exact
    finite = np.isfinite(error) & np.isfinite(correct)
    change = np.where(finite, np.square(np.maximum(error, 0.0)) - np.square(correct), 0.0)
    row = indices // max(output.reference.columns, 1)
    row_sq = noise.correct_sq + np.bincount(row, weights=change, minlength=noise.ulp_sq.size)
    return np.maximum(row_sq, 0.0)


def _honest_sq(output: Output) -> npt.NDArray[np.float64] | float:
    """Return what roundings on the way may add to each row's squared error.

    A slack that is a statistic is that many deviations of an element; of a row they add up.
    """
    reference = output.reference
    if reference.slack is None or reference.slack_deviations is None:
        return 0.0
    factor = (BUDGET_RATIO / reference.slack_deviations) ** 2
    squares = np.square(reference.slack.reshape(reference.rows, -1), dtype=np.float64)
    result: npt.NDArray[np.float64] = factor * squares.sum(axis=1)
    return result


def _widest_sq(output: Output) -> npt.NDArray[np.float64] | float:
    """Return the squared slack that one element of each row may use up where it is a statistic.

    A row or a whole of few elements has no average: its error is that of its largest.
    """
    reference = output.reference
    if reference.slack is None or reference.slack_deviations is None:
        return 0.0
    widest = reference.slack.reshape(reference.rows, -1).max(axis=1, initial=0.0)
    result: npt.NDArray[np.float64] = np.square(widest, dtype=np.float64)
    return result


def _unit_sq(noise: RowNoise) -> float:
    return max(float(noise.correct_sq.sum()), float(noise.ulp_sq.sum()) / 12)


def _row_unit_sq(noise: RowNoise) -> npt.NDArray[np.float64]:
    return np.maximum(noise.correct_sq, noise.ulp_sq / 12)


def _over_total(output: Output, noise: RowNoise, row_sq: npt.NDArray[np.float64]) -> Finding | None:
    unit = _unit_sq(noise)
    limit = HALF_TOTAL_RATIO**2 * unit + float(np.square(HALF_ELEMENT_ULP * noise.ulp_max.max()))
    limit += float(np.sum(_honest_sq(output)) + np.max(_widest_sq(output), initial=0.0))
    total = float(row_sq.sum())
    if total <= limit:
        return None
    ratio = float(np.sqrt(total / unit))
    note = (
        f"the whole error is {ratio:.2f} times that of correct rounding, {HALF_TOTAL_RATIO} at most"
    )
    return _worst_element(output, "total_l2", output.differing, note)


def _over_rows(output: Output, noise: RowNoise, row_sq: npt.NDArray[np.float64]) -> Finding | None:
    unit = _row_unit_sq(noise)
    limit = HALF_ROW_RATIO**2 * unit + np.square(HALF_ELEMENT_ULP * noise.ulp_max)
    bad = row_sq > limit + _honest_sq(output) + _widest_sq(output)
    if not bad.any():
        return None
    row = int(np.argmax(bad))
    ratio = float(np.sqrt(row_sq[row] / unit[row]))
    note = (
        f"row {row} has {ratio:.2f} times the error of correct rounding, {HALF_ROW_RATIO} at most"
    )
    indices = output.differing
    inside = indices[bad[indices // output.reference.columns]]
    return _worst_element(output, "row_l2", inside, note)


def _worst_element(output: Output, gate: str, wrong: Indices, note: str) -> Finding:
    """Return a finding that shows the element with the largest error of the first wrong row."""
    columns = output.reference.columns
    first_row = wrong[wrong // columns == wrong[0] // columns]
    error = np.abs(output.values_at(first_row) - output.reference.exact_at(first_row))
    return finding_at(output, gate, wrong, note, int(first_row[np.argmax(error)]))
