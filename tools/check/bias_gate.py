"""Errors that point one way: values cut off instead of rounded, a factor that is a little wrong.

Honest rounding moves results to either side alike: of the elements that are off, about as many are
too large as too small. For independent errors d of either sign Hoeffding's inequality bounds the
chance that |sum(d)| exceeds z * sqrt(sum(d^2)) by 2 * exp(-z^2 / 2), whatever their sizes.

Three things are allowed for besides. A quarter of all errors may point one way: intermediates that
take few values (silu of a bfloat16) repeat their rounding errors. The elements of a row may share a
part of theirs: the rounding of a value that dominates the row's sum moves all of them. And codes
have few decision boundaries: rounding to bfloat16 before they are taken moves each by up to half a
step of bfloat16, which need not cancel. Where it is known what a code is worth, smaller errors are
refused as well if they point one way whether the result was rounded before or not.

A factor of a row that is almost a power of two takes values of 16 bits almost to values of 16 bits:
whoever rounds before and after it moves the whole row one way. Where the oracle says what comes out
of such steps, errors count only if they point one way from there, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.rounding import round_to_bf16, round_to_fp16

from .case_data import InSteps
from .number_formats import CODE_FORMATS, HALF_FORMATS, ordinals, storage_bits
from .output import Finding, Indices, Output, finding_at_first
from .reference import CHUNK_ELEMENTS
from .signed_errors import STEPS_PER_UNIT, Steps, errors_if_rounded_before, signed_errors
from .tolerances import (
    BF16_MIDDLE,
    BF16_ROUNDING,
    BIAS_FALSE_ALARM,
    BIAS_LONG_ROW,
    BIAS_MANY_ROWS,
    BIAS_SHARE,
    BIAS_VALUES,
)


@dataclass(frozen=True)
class _Errors:
    """The elements that are off, and sums over each row."""

    indices: Indices
    steps: Steps
    signed: Steps
    absolute: Steps
    squared: Steps


@dataclass(frozen=True)
class _Test:
    """Errors, and what is allowed for in each row."""

    errors: _Errors
    moved: float
    """Errors of one row if all decision boundaries are moved the same way."""
    shared: Steps | float = 0.0
    """Spread of what the elements of each row share."""


@dataclass(frozen=True)
class Partners:
    """The outputs that an output is read with."""

    scale: Output | None = None
    """The candidate's own scales; None unless the output is of codes that have some."""
    codes: Output | None = None
    """Of scales, the codes that are read through them."""


Inputs = Mapping[str, npt.NDArray[Any]]


def bias_gate(
    output: Output, partners: Partners, inputs: Inputs, in_steps: InSteps = dict
) -> Finding | None:
    """Refuse a whole, or a long row, whose errors point one way.

    Args:
        output: Accepted by the gate of its own format.
        partners: Its scales or its codes.
        inputs: Of the case. Where one of them repeats few values errors repeat too, and their
            direction says nothing.
        in_steps: Of the case.
    """
    errors = _errors(output, signed_errors(output, partners.scale))
    if not errors.indices.size or not _points_one_way(output, _Test(errors, 0.0)):
        return None
    of_rows = [array for array in inputs.values() if _is_of_rows(array, output)]
    if any(_repeats_few_values(array) for array in of_rows):
        return None
    test = _with_shared(output, errors, of_rows, _moved_boundaries(output))
    if _points_one_way(output, test):
        stepwise = _in_steps(output, in_steps)
        if stepwise is not None:
            others = _errors(stepwise, signed_errors(stepwise, None))
            # Who does not round in these steps errs more from there, and hides a bias behind that.
            is_nearer = others.squared.sum() <= errors.squared.sum()
            if is_nearer and not _points_one_way(
                stepwise, _with_shared(stepwise, others, of_rows, 0.0)
            ):
                return None
        return _refusal(output, test)
    plain = _with_shared(output, errors, of_rows, 0.0)
    if not test.moved or not _points_one_way(output, plain):
        return None
    before = errors_if_rounded_before(output, partners.scale, partners.codes)
    if before is None:
        return None
    others = _errors(output, before)
    also = _points_one_way(output, _with_shared(output, others, of_rows, 0.0))
    return _refusal(output, plain) if also else None


def _in_steps(output: Output, in_steps: InSteps) -> Output | None:
    """Return the output beside what rounding on the way gives; None where nobody says what."""
    reference = output.reference
    if reference.number_format not in HALF_FORMATS or reference.offsets is not None:
        return None
    ends = in_steps().get(output.name)
    if ends is None:
        return None
    to_format = round_to_bf16 if reference.number_format == "bfloat16" else round_to_fp16
    one, other = (storage_bits(to_format(end)) for end in (ends.one, ends.other))
    got, low, high = (ordinals(b, reference.number_format) for b in (output.bits, one, other))
    is_between = (got >= np.minimum(low, high)) & (got <= np.maximum(low, high))
    right = np.where(is_between, output.bits, one)
    stepwise = replace(reference, exact=ends.one.reshape(-1), bits=right)
    return replace(output, reference=stepwise)


def _errors(output: Output, errors: tuple[Indices, Steps]) -> _Errors:
    indices, steps = errors
    row, rows = indices // max(output.reference.columns, 1), output.reference.rows
    sums: list[Steps] = [
        np.bincount(row, weights=weights, minlength=rows).astype(np.float64)
        for weights in (steps, np.abs(steps), np.square(steps))
    ]
    return _Errors(indices, steps, *sums)


def _with_shared(
    output: Output, errors: _Errors, of_rows: Sequence[npt.NDArray[Any]], moved: float
) -> _Test:
    return _Test(errors, moved, _shared_errors(output, errors, of_rows))


def _points_one_way(output: Output, test: _Test) -> bool:
    return _is_biased(output, test) or bool(_biased_rows(output, test).size)


def _refusal(output: Output, test: _Test) -> Finding | None:
    if _is_biased(output, test):
        return _whole(output, test.errors)
    return _rows(output, test.errors, _biased_rows(output, test))


def deviations(checks: int) -> float:
    """Return z for which `checks` bounds together raise `BIAS_FALSE_ALARM` false alarms at most."""
    return float(np.sqrt(2 * np.log(2 * checks / BIAS_FALSE_ALARM)))


def _is_biased(output: Output, test: _Test) -> bool:
    """Return whether the errors of the whole point one way, given what is allowed for."""
    errors = test.errors
    total, z = abs(float(errors.signed.sum())), deviations(1)
    spread = np.sqrt(errors.squared.sum() + np.square(test.shared).sum())
    moved = test.moved * output.reference.rows
    if total <= moved + BIAS_SHARE * errors.absolute.sum() + z * spread:
        return False
    # Rows are independent of one another, whatever the elements of each share.
    many = output.reference.rows >= BIAS_MANY_ROWS
    return not many or total > z * float(np.sqrt(np.square(errors.signed).sum()))


def _biased_rows(output: Output, test: _Test) -> Indices:
    """Return the rows whose errors point one way, given what is allowed for."""
    errors = test.errors
    if output.reference.columns < BIAS_LONG_ROW:
        return np.empty(0, dtype=np.int64)
    spread = deviations(output.reference.rows) * np.sqrt(errors.squared + np.square(test.shared))
    allowed = test.moved + BIAS_SHARE * errors.absolute + spread
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
    # A rounding to float16 is as many of its own steps as one to bfloat16 is of those.
    steps_of = "bfloat16" if reference.number_format in HALF_FORMATS else reference.number_format
    every = STEPS_PER_UNIT[steps_of] * BF16_ROUNDING * reference.columns
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
