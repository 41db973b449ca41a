"""Whether rows of 16-bit values are off as a whole, by one factor: what elements share is wrong.

A guess for the author, never a gate. A factor says more than single elements do: a sum kept in half
precision scales each row by another factor, a wrong constant all rows by the same.
"""

import numpy as np
import numpy.typing as npt

from .number_formats import HALF_FORMATS, half_ulp
from .output import Finding

Values = npt.NDArray[np.float64]

_ROWS = 32
_SURE = 6.0  # standard deviations of a row's factor, were its errors independent
_SOME = 0.25  # of the rows that were looked at
_ALIKE = 0.2


def row_factor_cause(finding: Finding) -> str | None:
    """Return what the errors of the first wrong rows have in common, None where it is nothing."""
    output = finding.output
    if output.reference.number_format not in HALF_FORMATS:
        return None
    rows = np.unique(finding.wrong // output.reference.columns)[:_ROWS]
    elements = (
        rows[:, None] * output.reference.columns + np.arange(output.reference.columns)
    ).ravel()
    exact = output.reference.exact_at(elements).reshape(rows.size, -1)
    got = output.values_at(elements).reshape(exact.shape)
    if _cut_off(got, exact, output.reference.number_format):
        return "the values are cut off, not rounded: use a conversion that rounds to nearest even"
    return _in_words(
        _factors(got - output.expected_values_at(elements).reshape(exact.shape), exact)
    )


def _cut_off(got: Values, exact: Values, number_format: str) -> bool:
    below = np.abs(exact) - np.abs(got)
    return bool(((below >= 0) & (below < half_ulp(exact, number_format))).mean() > 0.99)


def _factors(error: Values, exact: Values) -> Values:
    """Return by how much each row is too large, in shares of it; NaN where it may be chance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.einsum("ij,ij->i", exact, exact)
        off = np.einsum("ij,ij->i", error, exact) / weight
        spread = np.sqrt(np.square(error * exact).sum(axis=1)) / weight
        factors: Values = np.where(np.abs(off) > _SURE * spread, off, np.nan)
    return factors


def _in_words(factors: Values) -> str | None:
    sure = factors[np.isfinite(factors)]
    if sure.size < _SOME * factors.size or not sure.size:
        return None
    low, high = 1 + float(sure.min()), 1 + float(sure.max())
    if sure.size > 1 and high - low < _ALIKE * abs(float(sure.mean())):
        return (
            f"the rows are all off by one factor, {1 + float(sure.mean()):.5f}: look at constants"
        )
    return (
        f"each wrong row is off by a factor of its own, {low:.5f} to {high:.5f}: look at its sum,"
        " which may be short of terms, or kept in half precision or bfloat16 instead of float32"
    )
