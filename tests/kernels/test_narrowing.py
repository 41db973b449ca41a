"""Exact values are kept as float32 only where that loses nothing that counts."""

import numpy as np
import pytest

from kopt.kernels.narrowing import float32_is_enough, keep_exact, kept_dtype


def _kept(*values: float) -> tuple[bool, list[float]]:
    exact, kept = np.array(values), np.empty(len(values), dtype=np.float32)
    return keep_exact(kept, exact), kept.tolist()


def test_values_of_ordinary_size_are_rounded_to_float32() -> None:
    assert _kept(0.1, -3.0, 2.0**99) == (True, [float(np.float32(0.1)), -3.0, 2.0**99])


def test_zeros_infinities_and_nan_are_what_they_were() -> None:
    fits, values = _kept(0.0, np.inf, -np.inf, np.nan, 1.0)
    assert fits and np.array_equal(values, [0.0, np.inf, -np.inf, np.nan, 1.0], equal_nan=True)


@pytest.mark.parametrize("far", [2.0**-100, -(2.0**-150), 1e-300, 2.0**100, -1e300])
def test_a_magnitude_beyond_the_safe_range_is_not_kept_as_float32(far: float) -> None:
    assert not _kept(1.0, far)[0]
    kept = np.empty(2)
    assert keep_exact(kept, np.array([1.0, far])) and kept.tolist() == [1.0, far]


def test_no_values_are_kept() -> None:
    assert _kept() == (True, [])


def test_float64_is_kept_but_where_float32_is_enough() -> None:
    with float32_is_enough():
        assert kept_dtype() is np.float32
    assert kept_dtype() is np.float64
