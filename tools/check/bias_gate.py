"""Errors that point one way: values cut off instead of rounded, a factor that is a little wrong.

Honest rounding moves results to either side alike: of the elements that are off, about as many are
too large as too small. For independent errors d of either sign Hoeffding's inequality bounds the
chance that |sum(d)| exceeds z * sqrt(sum(d^2)) by 2 * exp(-z^2 / 2), whatever their sizes.

Three things are allowed for besides. A quarter of all errors may point one way: intermediates that
take few values (silu of a bfloat16) repeat their rounding errors. The elements of a row may share a
part of theirs: the rounding of a value that dominates the row's sum moves all of them. And codes
have few decision boundaries: rounding to bfloat16 before they are taken moves each by up to half a
step of bfloat16, which need not cancel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .number_formats import CODE_FORMATS
from .output import Finding, Indices, Output, finding_at_first
from .reference import CHUNK_ELEMENTS
from .signed_errors import STEPS_PER_UNIT, Steps, signed_errors
from .tolerances import (
    BF16_MIDDLE,
    BF16_ROUNDING,
    BIAS_FALSE_ALARM,
    BIAS_LONG_ROW,
    BIAS_MANY_ROWS,
    BIAS_SHARE,
    BIAS_VALUES,
)

Inputs = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Errors:
    """The elements that are off, and sums over each row."""

    indices: Indices
    steps: Steps
    signed: Steps
    absolute: Steps
    squared: Steps


def bias_gate(output: Output, scale: Output | None, inputs: Inputs) -> Finding | None:
    """Refuse a whole, or a long row, whose errors point one way.

    Args:
        output: Accepted by the gate of its own format.
        scale: The candidate's own scales of codes that have some.
        inputs: Of the case. Where one of them repeats few values errors repeat too, and their
            direction says nothing.
    """
    errors = _errors(output, scale)
    if not errors.indices.size:
        return None
    nothing = np.zeros(output.reference.rows)
    if not (_is_biased(output, errors, nothing) or _biased_rows(output, errors, nothing).size):
        return None
    of_rows = [array for array in inputs.values() if _is_of_rows(array, output)]
    if any(_repeats_few_values(array) for array in of_rows):
        return None
    shared = _shared_errors(output, errors, of_rows)
    if _is_biased(output, errors, shared):
        return _whole(output, errors)
    rows = _biased_rows(output, errors, shared)
    return _rows(output, errors, rows) if rows.size else None


def _errors(output: Output, scale: Output | None) -> _Errors:
    indices, steps = signed_errors(output, scale)
    row, rows = indices // max(output.reference.columns, 1), output.reference.rows
    sums: list[Steps] = [
        np.bincount(row, weights=weights, minlength=rows).astype(np.float64)
        for weights in (steps, np.abs(steps), np.square(steps))
    ]
    return _Errors(indices, steps, *sums)


def deviations(checks: int) -> float:
    """Return z for which `checks` bounds together raise `BIAS_FALSE_ALARM` false alarms at most."""
    return float(np.sqrt(2 * np.log(2 * checks / BIAS_FALSE_ALARM)))


def _is_biased(output: Output, errors: _Errors, shared: Steps) -> bool:
    """Return whether the errors of the whole point one way, given what rows share."""
    total, z = abs(float(errors.signed.sum())), deviations(1)
    spread = np.sqrt(errors.squared.sum() + np.square(shared).sum())
    moved = _moved_boundaries(output) * output.reference.rows
    if total <= moved + BIAS_SHARE * errors.absolute.sum() + z * spread:
        return False
    # Rows are independent of one another, whatever the elements of each share.
    many = output.reference.rows >= BIAS_MANY_ROWS
    return not many or total > z * float(np.sqrt(np.square(errors.signed).sum()))


def _biased_rows(output: Output, errors: _Errors, shared: Steps) -> Indices:
    """Return the rows whose errors point one way, given what each row's elements share."""
    if output.reference.columns < BIAS_LONG_ROW:
        return np.empty(0, dtype=np.int64)
    spread = deviations(output.reference.rows) * np.sqrt(errors.squared + np.square(shared))
    allowed = _moved_boundaries(output) + BIAS_SHARE * errors.absolute + spread
    return np.flatnonzero(np.abs(errors.signed) > allowed)


def _moved_boundaries(output: Output) -> float:
    """Return the errors of one row if every decision boundary of its codes moves the same way."""
    reference = output.reference
    is_code = reference.number_format in CODE_FORMATS
    steps = STEPS_PER_UNIT[reference.number_format] * BF16_MIDDLE if is_code else 0.0
    return steps * reference.columns


def _is_of_rows(array: npt.NDArray[Any], output: Output) -> bool:
    """Return whether an input holds floats for every row of the output."""
    same = array.shape[:1] == output.reference.shape[:1] and array.ndim > 1
    return same and array.dtype.kind in "fV" and array.size % output.reference.rows == 0


def _shared_errors(output: Output, errors: _Errors, of_rows: Sequence[npt.NDArray[Any]]) -> Steps:
    """Return for each row the spread of what roundings before a sum over it add to every element.

    A sum of squares of n values of one size has 1 / sqrt(n) of the relative error of one; n is
    smaller where few values dominate, in the outputs or in an input. Such roundings show in the
    elements themselves as well: where few are off, none were made.
    """
    reference = output.reference
    largest = _concentration(reference.exact, reference.rows)
    for array in of_rows:
        largest = np.maximum(largest, _concentration(array, reference.rows))
    every = STEPS_PER_UNIT[reference.number_format] * BF16_ROUNDING * reference.columns
    return largest * np.minimum(every, 3 * errors.squared)


def _concentration(values: npt.NDArray[Any], rows: int) -> Steps:
    """Return sqrt(sum(v^4)) / sum(v^2) of each row: 1 for one value, 1 / sqrt(n) for n alike."""
    matrix = values.reshape(rows, -1)
    result = np.zeros(rows)
    step = max(1, CHUNK_ELEMENTS // max(matrix.shape[1], 1))
    for start in range(0, rows, step):
        part = np.abs(matrix[start : start + step].astype(np.float64))
        part[~np.isfinite(part)] = 0.0
        part /= np.maximum(part.max(axis=1, keepdims=True, initial=0.0), 1e-300)
        square = np.square(part)
        fourth = np.sqrt(np.einsum("ij,ij->i", square, square))
        result[start : start + step] = fourth / np.maximum(square.sum(axis=1), 1.0)
    return result


def _repeats_few_values(array: npt.NDArray[Any]) -> bool:
    """Return whether a tensor has only a handful of magnitudes, but more than one."""
    seen = np.unique(np.abs(array.reshape(-1)[: 1 << 16].astype(np.float32))).size
    return 1 < seen < min(BIAS_VALUES, array.size // 8)


def _whole(output: Output, errors: _Errors) -> Finding | None:
    elements = output.reference.exact.size
    note = f"of all {elements} elements {_words(errors.steps, elements)}"
    toward = np.sign(errors.steps) == np.sign(errors.steps.sum())
    return finding_at_first(output, "bias", errors.indices[toward], note)


def _rows(output: Output, errors: _Errors, rows: Indices) -> Finding | None:
    """Show the first element of the first row, with all that is off in rows whose errors agree."""
    columns = output.reference.columns
    row = errors.indices // columns
    words = _words(errors.steps[row == rows[0]], columns)
    note = f"in {rows.size} of {output.reference.rows} rows errors agree: in row {rows[0]} {words}"
    return finding_at_first(output, "bias", errors.indices[np.isin(row, rows)], note)


def _words(steps: Steps, elements: int) -> str:
    mean = float(steps.sum()) / elements
    toward = int((np.sign(steps) == np.sign(mean)).sum())
    return (
        f"{steps.size} are off by more than ties explain, {toward} of them too"
        f" {'large' if mean > 0 else 'small'}, {mean:+.4f} rounding steps on average: errors point"
        f" one way, further than chance takes {BIAS_FALSE_ALARM:g} of honest outputs"
    )
