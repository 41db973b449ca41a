"""Outputs of a handful of elements beside their references, written down by hand."""

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import ScaledBy
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.tools.check.number_formats import half_ulp, storage_bits
from kopt.tools.check.output import Output
from kopt.tools.check.reference import Reference, RowNoise


class Extras(TypedDict, total=False):
    """What a reference has besides the values."""

    slack: float | None
    scaled_by: ScaledBy
    written: npt.NDArray[np.bool_]
    noise: RowNoise


def small_output(
    number_format: str,
    exact: Sequence[float] | npt.NDArray[np.float64],
    right: npt.NDArray[Any],
    got: npt.NDArray[Any],
    **extras: Unpack[Extras],
) -> Output:
    """Return the stored elements `got` beside the correctly rounded `right` of `exact`."""
    values = np.atleast_2d(np.asarray(exact, dtype=np.float64))
    slack = extras.get("slack")
    reference = Reference(
        number_format=number_format,
        shape=values.shape,
        rows=values.shape[0],
        exact=values.reshape(-1),
        bits=storage_bits(right),
        written=extras.get("written"),
        offsets=None,
        scaled_by=extras.get("scaled_by"),
        bit_exact=False,
        slack=None if slack is None else np.full(values.size, slack),
        unit=np.ones(()),
        noise=extras.get("noise"),
    )
    return Output("out", reference, got)


def bf16_rows(
    exact: npt.NDArray[np.float64],
    got: npt.NDArray[np.float64],
    slack: float | None = None,
) -> Output:
    """Return bfloat16 rows of `got`, which holds bfloat16 values, beside `exact` rounded."""
    right, ulp = round_to_bf16(exact), half_ulp(exact)
    assert np.array_equal(decode(round_to_bf16(got)), got)
    with np.errstate(invalid="ignore"):
        error = np.where(np.isfinite(exact), decode(right) - exact, 0.0)
    noise = RowNoise(
        correct_sq=np.square(error).sum(axis=1),
        ulp_sq=np.square(ulp).sum(axis=1),
        ulp_max=ulp.max(axis=1),
    )
    stored = round_to_bf16(got)
    return small_output("bfloat16", exact, right, stored, slack=slack, noise=noise)
